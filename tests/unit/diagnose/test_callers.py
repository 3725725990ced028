"""Who is named as the caller of a culprit, and who is not."""

from __future__ import annotations

import pytest
from blamecase import TEXT, blame_of, sites
from factory import BACKWARD, CALL, FETCH, NEXT, WORKER, WORKER_PID, Source, lib, measurement, stack

from unstall.diagnose.blame import Blame, culprit
from unstall.diagnose.callers import loop_functions


@pytest.fixture
def code(tmp_path):
    return Source(tmp_path / "program.py", TEXT)


def callers_in(blame, where="main"):
    found = blame.main_culprit(blame.in_phase("data_wait")) if where == "main" else culprit(blame.workers, 100, where)
    return found.function, [(caller.function, caller.line, round(caller.share, 2)) for caller in found.callers]


def test_the_functions_that_lead_to_it_are_named_nearest_first(code):
    item, apply = code.at("Photos.__getitem__", "# item"), code.at("Compose.__call__", "# apply")
    deep = stack(WORKER, FETCH, item, apply, code.at("blur", "# blur"), pid=WORKER_PID, count=60)
    aside = stack(WORKER, FETCH, item, apply, code.at("turn", "# turn"), pid=WORKER_PID, count=30)
    function, callers = callers_in(blame_of([deep, aside]), "worker")
    assert function == "blur"
    assert callers == [
        ("Compose.__call__", code.line("# apply"), 0.9),
        ("Photos.__getitem__", code.line("# item"), 0.9),
    ]


def test_the_functions_that_run_the_loop_are_none(code):
    start, train = code.at("<module>", "# start"), code.at("train", "# ask")
    making = stack(start, train, NEXT, code.at("Photos.__getitem__", "# item"), code.at("blur", "# blur"), count=80)
    model = stack(start, code.at("train", "# call model"), CALL, code.at("Net.forward", "# forward"), count=10)
    backward = stack(start, code.at("train", "# call backward"), BACKWARD, count=10)
    blame = blame_of([making, model, backward], sites=sites(code))
    assert callers_in(blame) == ("blur", [("Photos.__getitem__", code.line("# item"), 0.8)])
    assert {name for _, name in loop_functions(blame.main)} == {"<module>", "train"}


def test_a_loop_is_known_where_all_samples_are_of_one_part(code):
    start, train = code.at("<module>", "# start"), code.at("train", "# ask")
    making = stack(start, train, NEXT, code.at("Photos.__getitem__", "# item"), code.at("blur", "# blur"), count=80)
    for known in ([], sites(code)):  # a thread that is not the main one has no sites
        assert callers_in(blame_of([making], sites=known)) == (
            "blur",
            [("Photos.__getitem__", code.line("# item"), 1.0)],
        )


def test_a_caller_of_a_part_of_the_time_is_none(code):
    blur = code.at("blur", "# blur")
    ways = [stack(WORKER, FETCH, code.at(*caller), blur, pid=WORKER_PID, count=33) for caller in (
        ("Photos.__getitem__", "# item"), ("Compose.__call__", "# apply"), ("tidy", "# tidy"))]  # fmt: skip
    assert callers_in(blame_of(ways), "worker") == ("blur", [])


def test_one_that_calls_itself_is_one_caller(code):
    item, apply = code.at("Photos.__getitem__", "# item"), code.at("Compose.__call__", "# apply")
    nested = stack(WORKER, FETCH, item, apply, apply, apply, code.at("blur", "# blur"), pid=WORKER_PID, count=50)
    _, callers = callers_in(blame_of([nested]), "worker")
    assert [name for name, _, _ in callers] == ["Compose.__call__", "Photos.__getitem__"]


LOOPING = """
def scale(channel):
    bins = channel.histc(256)  # bins
    return bins / bins.sum()

def equalize(images):
    return [scale(channel) for channel in images]  # loop

class Cell:
    def forward(self, x):
        return x  # cell

class Net:
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)  # layers
        return equalize(x)  # once

def train(model, loader):
    for batch in loader:
        loss = scale(batch)  # batch
        model(batch)  # model
        loss.backward()  # backward
"""


@pytest.fixture
def looping(tmp_path):
    return Source(tmp_path / "looping.py", LOOPING)


def at_its_loop(code, *frames, backward=0):
    """Function, line and call of what is blamed for the stack."""
    above = code.at("train", "# model")
    known = [code.site("~forward", "train", "# model"), code.site("~backward", "train", "# backward")]
    stacks = [stack(above, CALL, *frames, count=60), stack(above, CALL, code.at("Net.forward", "# layers"), count=20)]
    engine = stack(code.at("train", "# backward"), BACKWARD, lib("torch/autograd/graph.py", "_engine_run_backward"))
    more = {"samples": [*stacks, *([engine] * backward)], "sites": known}
    found = Blame(measurement({"forward": 0.05, "backward": 0.05}, **more)).model_culprit()
    return found.function, found.line, found.via


def test_what_is_called_item_by_item_is_blamed_at_the_loop_around_it(looping):
    once, loop = looping.at("Net.forward", "# once"), looping.at("equalize", "# loop")
    listing = looping.at("equalize.<locals>.<listcomp>", "# loop")
    wanted = ("equalize", looping.line("# loop"), "scale")
    for frames in ((once, loop), (once, loop, listing)):
        assert at_its_loop(looping, *frames, looping.at("scale", "# bins")) == wanted


def test_layers_that_a_model_calls_in_turn_and_a_call_from_no_loop_stay_blamed(looping):
    layers = looping.at("Net.forward", "# layers")
    assert at_its_loop(looping, layers, CALL, looping.at("Cell.forward", "# cell"))[0] == "Cell.forward"
    assert at_its_loop(looping, looping.at("Net.forward", "# once"), looping.at("equalize", "# loop"))[0] == "equalize"


def test_the_loop_of_the_training_is_no_loop_around_a_call(looping):
    assert at_its_loop(looping)[:2] == ("train", looping.line("# model"))  # where nothing else holds the time
    called = [stack(looping.at("train", "# batch"), CALL, looping.at("scale", "# bins"))]
    known = [looping.site("~forward", "train", "# model"), looping.site("~backward", "train", "# backward")]
    assert blame_of(called, sites=known).model_culprit().function == "scale"


def test_of_a_training_whose_backward_has_no_lines_forward_says_who_holds_the_time(looping):
    once, loop = looping.at("Net.forward", "# once"), looping.at("equalize", "# loop")
    assert at_its_loop(looping, once, loop, looping.at("scale", "# bins"), backward=3)[0] == "equalize"


MAKING = """
class Series:
    def __init__(self, rows):
        self.rows = sorted(rows)  # sort

    @classmethod
    def of(cls, rows):
        return cls(rows)  # of

class Part(Series):
    def __init__(self, rows):
        super().__init__(rows)  # super

class Windows:
    def __getitem__(self, index):
        return Series.of(self.rows[index:]), Part(self.rows)  # item

def train(loader):
    for batch in loader:  # ask
        series = Series(batch)  # batch
        model(batch)  # model
"""


@pytest.fixture
def making(tmp_path):
    return Source(tmp_path / "making.py", MAKING)


def blamed_in(code, *frames):
    """Function, line and call of what is blamed for data that are made in the loop."""
    known = [code.site("~forward", "train", "# model"), code.site("~data.next", "train", "# ask")]
    stacks = [stack(*frames, count=60), stack(code.at("train", "# model"), CALL, count=40)]
    blame = blame_of(stacks, sites=known)
    found = culprit(blame.main[:1], blame.total, "main", blame.loops)
    return found.function, found.line, found.via


def test_who_makes_objects_again_and_again_is_blamed_for_their_constructor(making):
    item, sort = making.at("Windows.__getitem__", "# item"), making.at("Series.__init__", "# sort")
    for between in (making.at("Series.of", "# of"), making.at("Part.__init__", "# super")):
        found = blamed_in(making, making.at("train", "# ask"), NEXT, item, between, sort)
        assert found == ("Windows.__getitem__", making.line("# item"), "Series.__init__")


def test_a_constructor_that_the_loop_itself_calls_and_one_of_no_loop_are_blamed(making):
    sort = making.at("Series.__init__", "# sort")
    assert blamed_in(making, making.at("train", "# batch"), sort)[0] == "Series.__init__"
    once = blame_of([stack(making.at("Windows.__getitem__", "# item"), sort)])
    assert culprit(once.main, 1, "main").function == "Series.__init__"
