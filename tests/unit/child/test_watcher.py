"""What is told of the first calls of each seam, and the two early looks at operators and modules."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

import numpy
import pytest
from recorders import load, silence

from unstall.child import allocator, flops, inprocess, recording, retention
from unstall.child.seams import modules
from unstall.child.tap import Tap
from unstall.child.watcher import PROBE, SAMPLE, STOP, Watcher
from unstall.records.vocabulary import Tick

torch = pytest.importorskip("torch", reason="the seams watched are those of torch")


class Watched:
    """A watcher whose words are kept, and the seams as a program would pass them."""

    def __init__(self, api, path, options=None):
        self.api, self.path = api, path
        self.told = []
        self.watcher = Watcher(self._tell, {"flops": False} if options is None else options)
        api.watch(self.watcher, False)

    def _tell(self, kind, **facts):
        json.dumps(facts, default=str)
        self.told.append((kind, facts))

    def of(self, kind):
        return [facts for told, facts in self.told if told == kind]

    def see(self, name, first=None, second=None, *, control=0):
        """As the recorder calls it where a seam begins."""
        self.watcher(self.api.intern(name), control, first, second)


@pytest.fixture
def api(tmp_path, monkeypatch):
    api = load("fallback")
    silence(api)
    monkeypatch.setattr(recording, "native", api)
    api.open(str(tmp_path / "rec-1.bin"))
    yield api
    silence(api)


@pytest.fixture
def watched(api, tmp_path):
    return Watched(api, tmp_path / "rec-1.bin")


# ---------------------------------------------------------------- facts


def test_each_place_that_calls_a_seam_is_told_once_with_its_stack(watched):
    number = watched.api.intern("~optimizer")

    def step():
        watched.watcher(number, 0, None, None)

    for _ in range(3):
        step()
    step()
    sites = watched.of("site")
    assert len(sites) == 2  # the same line, called from two lines of this test
    for site in sites:
        assert site["name"] == "~optimizer"
        (file, function, line, first_line), (_, caller, *_) = site["stack"][:2]
        assert (file, function) == (__file__, "step")
        assert (first_line, line) == (step.__code__.co_firstlineno, step.__code__.co_firstlineno + 1)
        assert caller == "test_each_place_that_calls_a_seam_is_told_once_with_its_stack"
    assert sites[0]["stack"][1] != sites[1]["stack"][1]


def test_a_place_is_told_apart_by_what_leads_there_and_told_with_all_of_it(watched):
    number = watched.api.intern("~forward")

    def call():
        watched.watcher(number, 0, None, None)

    def helper(depth):
        return helper(depth - 1) if depth else call()

    def train():
        helper(2)

    def validate():
        helper(2)

    def deep():
        helper(60)

    for run in (train, validate, deep, train):
        run()
    stacks = [[function for _, function, *_ in site["stack"]] for site in watched.of("site")]
    assert len(stacks) == 3
    assert [leading for stack in stacks for leading in ("train", "validate", "deep") if leading in stack] == [
        "train",
        "validate",
        "deep",
    ]


def test_torch_is_introduced_once(watched):
    for _ in range(3):
        watched.see("~optimizer")
    (facts,) = watched.of("torch")
    assert facts["version"] == str(torch.__version__)
    assert facts["threads"] == torch.get_num_threads()
    assert facts["libraries"]["numpy"] and "torch._C" not in facts["libraries"]


def test_a_loader_is_told_when_its_first_epoch_begins(watched):
    dataset = torch.utils.data.TensorDataset(torch.zeros(8, 2))
    loader = torch.utils.data.DataLoader(dataset, batch_size=4)
    for _ in range(2):
        watched.see("~data.iter", loader)
    (facts,) = watched.of("loader")
    assert facts["id"] == id(loader)
    assert (facts["num_workers"], facts["batch_size"], facts["pin_memory"]) == (0, 4, False)
    assert (facts["dataset"], facts["iterable"]) == ("TensorDataset", False)
    assert facts["collate"] == "default_collate"
    assert facts["samples_at"] == ("", 0)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.zeros(2)


def test_a_loader_is_told_with_the_line_that_makes_a_sample(watched):
    part = torch.utils.data.Subset(torch.utils.data.ConcatDataset([Rows()]), range(4))
    datasets = (Rows(), torch.utils.data.Subset(Rows(), range(4)), part)
    loaders = [torch.utils.data.DataLoader(dataset) for dataset in datasets]
    for loader in loaders:
        watched.see("~data.iter", loader)
    own, of_subset, of_parts = (facts["samples_at"] for facts in watched.of("loader"))
    assert own == of_subset == (__file__, Rows.__getitem__.__code__.co_firstlineno)
    assert of_parts == ("", 0), "which of several it is, is not told"


def test_an_iterable_dataset_is_known_as_one(watched):
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

    watched.see("~data.iter", torch.utils.data.DataLoader(Stream()))
    assert watched.of("loader")[0]["iterable"]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x)


def test_a_root_module_is_told_with_where_it_is_written(watched):
    net = Net().double()
    watched.see("~forward", net, torch.zeros(5, 3))
    watched.see("~forward", net, torch.zeros(6, 3))
    (facts,) = watched.of("root")
    assert (facts["type"], facts["parameters"], facts["dtype"]) == ("Net", 3 * 2 + 2, "torch.float64")
    assert (facts["file"], facts["line"]) == (__file__, Net.forward.__code__.co_firstlineno)
    assert [batch["size"] for batch in watched.of("batch")] == [5, 6]


@pytest.mark.parametrize(
    "module, batch, size",
    [
        (None, torch.zeros(7, 3), 7),
        (None, {"pixels": torch.zeros(7, 3), "labels": torch.zeros(7)}, 7),
        (None, [torch.zeros(7, 3), 5], 7),
        (None, ([torch.zeros(7, 3)],), 7),
        (None, torch.zeros(7), None),
        (None, "text", None),
        (None, None, None),
        (None, {}, None),
        (torch.nn.Linear(7, 2), torch.zeros(7), 1),
        (torch.nn.Linear(7, 2), torch.zeros(7, 7), 7),
        (torch.nn.Conv2d(3, 4, 2), torch.zeros(3, 9, 9), 1),
        (torch.nn.Conv2d(3, 4, 2), torch.zeros(7, 3, 9, 9), 7),
        (torch.nn.Embedding(9, 7), torch.zeros(7, dtype=torch.long), None),
        (torch.nn.Linear(7, 2), numpy.zeros((4, 7)), 4),
        (torch.nn.GRU(2, 2), torch.zeros(11, 7, 2), 7),
        (torch.nn.GRU(2, 2, batch_first=True), torch.zeros(7, 11, 2), 7),
    ],
    ids=[
        "tensor",
        "dict",
        "list",
        "nested",
        "vector",
        "text",
        "none",
        "empty",
        "one row",
        "rows",
        "one image",
        "images",
        "tokens",
        "array",
        "time first",
        "batch first",
    ],
)
def test_the_batch_size_is_that_of_the_first_tensor(watched, module, batch, size):
    watched.see("~forward", module or Net(), batch)
    assert watched.of("batch")[0]["size"] == size


def test_the_size_of_a_batch_is_read_of_it_alone(monkeypatch):
    """A loop that only infers asks in each call; to go through the model's weights took a hundred times as long."""
    monkeypatch.setattr(modules.reading, "parameters", None)
    assert modules.batch_size(torch.nn.Linear(7, 2), torch.zeros(4, 7)) == 4
    assert modules.batch_size(torch.nn.Linear(7, 2), torch.zeros(7)) is None


def test_an_environment_is_told_once(watched):
    env = SimpleNamespace(num_envs=4)
    for _ in range(2):
        watched.see("~env.step", env)
    (facts,) = watched.of("env")
    assert (facts["id"], facts["num_envs"]) == (id(env), 4)


@pytest.mark.parametrize("value, told", [(float("nan"), 1), (1.0, 0), (float("inf"), 0)])
def test_a_loss_that_is_not_a_number_is_told_once(watched, value, told):
    for _ in range(2):
        watched.see("~backward", (torch.tensor(value, requires_grad=True),))
    assert len(watched.of("nan")) == told


@pytest.mark.parametrize("outputs", [None, (), (None,), ("text",), (torch.zeros(3),)])
def test_what_else_backward_starts_from_is_no_trouble(watched, outputs):
    watched.see("~backward", outputs)
    assert watched.of("error") == watched.of("nan") == []


# ---------------------------------------------------------------- wishes of the parent's


def test_stop_ends_the_program(watched):
    with pytest.raises(SystemExit) as caught:
        watched.see("~optimizer", control=STOP)
    assert caught.value.code is None


def test_a_probe_is_answered_and_the_wish_taken_back(watched, monkeypatch):
    monkeypatch.setattr(retention, "probe", lambda frame: {"frame": frame.f_code.co_name})
    monkeypatch.setattr(allocator, "free_bytes", lambda: 7)
    tap = Tap(watched.path)
    tap.control, began = PROBE, time.monotonic()
    watched.see("~optimizer", control=PROBE)
    assert tap.control == 0
    told = {"seam": "~optimizer", "found": {"frame": "see"}, "subnormal": 0.0, "free": 7}
    assert watched.of("probe") == [told]
    (window,) = watched.of("window")
    assert window["what"] == "probe" and began <= window["began"] <= window["ended"] <= time.monotonic()


def test_sampling_from_inside_begins_and_the_wish_is_taken_back(watched, monkeypatch):
    started = []
    monkeypatch.setattr(inprocess.InProcessSampler, "start", lambda self: started.append(self))
    tap = Tap(watched.path)
    tap.control = SAMPLE
    watched.see("~optimizer", control=SAMPLE)
    assert tap.control == 0
    assert len(started) == 1


def test_a_note_that_fails_is_told_and_not_taken_again(watched):
    def note(*_):
        raise RuntimeError("no such layout")

    watched.watcher.notes["~data.iter"] = note
    watched.see("~data.iter", object())
    (error,) = watched.of("error")
    assert "no such layout" in error["error"]
    watched.see("~data.iter", object())
    assert len(watched.of("error")) == 1
    watched.see("~env.step", object())
    assert len(watched.of("env")) == 1


def test_a_failure_of_its_own_is_told_and_silences_it(watched, monkeypatch):
    monkeypatch.setattr(watched.watcher.windows, "event", lambda *_: 1 / 0)
    watched.see("~optimizer")
    (error,) = watched.of("error")
    assert "ZeroDivisionError" in error["error"]
    heard = len(watched.told)
    watched.api.wrap(lambda x: x, "~forward", kind=Tick.FORWARD)(1)
    assert len(watched.told) == heard


# ---------------------------------------------------------------- the early looks


@pytest.fixture
def looking(api, tmp_path):
    return Watched(api, tmp_path / "rec-1.bin", {})


def train(watched, net, steps, optimizer=None):
    """As the seams see a training loop, with the work done between them."""
    optimizer = optimizer or SimpleNamespace()
    keep = []
    for _ in range(steps):
        watched.see("~forward", net, keep)
        loss = net.layer(torch.ones(4, 3)).sum()
        watched.see("~backward", (loss,))
        loss.backward()
        watched.see("~optimizer", optimizer)
    return optimizer


def test_the_operators_of_one_optimizer_step_are_counted(looking):
    train(looking, Net(), 12)
    (fact,) = looking.of("flops")
    assert fact["per"] == "~optimizer"
    assert fact["flops"] == fact["cycles"] * 2 * (2 * 4 * 3 * 2)  # forward, and the weights' gradient
    assert fact["ops"] > 0
    windows = looking.of("window")
    assert [window["what"] for window in windows] == ["flops", "modules"]
    assert windows[0]["began"] <= windows[0]["ended"]
    assert windows[1]["marks"] == sorted(windows[1]["marks"])
    (table,) = looking.of("modules")
    assert [(row["name"], row["type"]) for row in table["modules"]] == [("", "Net"), ("layer", "Linear")]
    assert looking.of("error") == []


def made(looking):
    looking.see("~optimizer.made", optimizer := SimpleNamespace())
    return optimizer


def test_a_training_after_the_first_is_looked_at_as_well(looking):
    """Of a student after its teacher, each with an optimizer of its own; what comes third is one too many."""
    made_first = made(looking)
    teacher, student = Net(), Net()
    train(looking, teacher, 12, made_first)
    assert looking.watcher.windows.state == "done"
    trained = [train(looking, student, 12, made(looking)) for _ in range(4)]
    looks = looking.of("flops")
    assert [look["look"] for look in looks] == [1, 2, 3]
    assert [look["subject"] for look in looks] == [id(each) for each in [made_first, *trained[:2]]]
    assert looks[1]["flops"] / looks[1]["cycles"] == looks[0]["flops"] / looks[0]["cycles"]
    assert [table["root"] for table in looking.of("modules")] == [id(teacher), id(student), id(student)]
    assert looking.watcher.windows.state == "done"


def test_an_optimizer_that_never_steps_is_not_waited_for_for_ever(looking):
    first = train(looking, Net(), 12)
    made(looking)
    assert looking.watcher.windows.state == "waiting"
    for _ in range(10_000):
        looking.see("~optimizer", first)
    assert looking.watcher.windows.state == "done"
    made(looking)
    assert looking.watcher.windows.state == "done"


def test_no_mode_is_left_active_after_the_look(looking):
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    train(looking, Net(), 12)
    assert _get_current_dispatch_mode() is None
    assert looking.watcher.windows.state == "done"


def test_without_an_optimizer_the_operators_of_one_model_call_are_counted(looking):
    net = Net()
    for _ in range(12):
        looking.see("~forward", net, None)
        with torch.no_grad():
            net.layer(torch.ones(4, 3))
    (fact,) = looking.of("flops")
    assert (fact["per"], fact["flops"]) == ("~forward", fact["cycles"] * 2 * 4 * 3 * 2)


def test_what_the_first_of_several_calls_has_computed_is_computed_again_in_the_others(looking):
    net, weights = Net(), torch.randn(5, 5)
    for _ in range(20):
        looking.see("~forward", net, None)
        with torch.no_grad():
            net.layer(torch.randn(4, 3))
            weights @ weights
    (fact,) = looking.of("flops")
    assert fact["cycles"] == 4
    again = fact["recomputed"]
    assert again["operators"] == 1 and 0 < again["again"] < again["of"]


def infer(watched, net, *sizes, calls=20, grad=False):
    for size in sizes:
        for _ in range(calls):
            with torch.set_grad_enabled(grad):
                watched.see("~forward", net, torch.ones(size, 3))
                net.layer(torch.ones(size, 3))


def test_a_model_that_infers_with_other_batches_after_a_set_up_is_looked_at_again(looking):
    infer(looking, Net(), 32, 1)
    assert [fact["flops"] / fact["cycles"] for fact in looking.of("flops")] == [2 * 32 * 3 * 2, 2 * 1 * 3 * 2]
    assert len([window for window in looking.of("window") if window["what"] == "modules"]) == 2
    assert [fact["size"] for fact in looking.of("batch")[-8:]] == [1] * 8
    assert looking.of("error") == []


def test_it_is_so_only_once(looking):
    infer(looking, Net(), 32, 1, 32, 1)
    assert len(looking.of("flops")) == 2


def test_a_last_batch_of_few_is_no_other_loop(looking):
    net = Net()
    for _ in range(4):
        infer(looking, net, 32, calls=9)
        infer(looking, net, 5, calls=1)
    assert len(looking.of("flops")) == 1


def test_nor_is_a_training_in_larger_batches(looking):
    net = Net()
    infer(looking, net, 4)
    infer(looking, net, 32, grad=True)
    assert len(looking.of("flops")) == 1


def test_a_block_of_inference_mode_for_each_call_is_no_end_to_the_look(looking):
    net = Net()
    for _ in range(20):
        with torch.inference_mode():
            looking.see("~forward", net, None)
            net.layer(torch.randn(4, 3))
    (fact,) = looking.of("flops")
    assert fact["flops"] == fact["cycles"] * 2 * 4 * 3 * 2
    assert torch.ones(3).sum() == 3


def test_gradients_that_are_dropped_are_told_once_their_own_optimizer_steps(looking):
    maker, judge = Net(), torch.nn.Linear(2, 1)
    of_maker, of_judge = (torch.optim.SGD(each.parameters(), lr=0.1) for each in (maker, judge))
    forward = looking.api.intern("~forward")

    def learn(optimizer):
        x = torch.randn(4, 3)
        made = (looking.watcher(forward, 0, maker, x), maker(x))[1]  # on one line, as the call itself is seen
        loss = (looking.watcher(forward, 0, judge, made), judge(made))[1].sum()
        optimizer.zero_grad()
        loss.backward()
        looking.see("~optimizer", optimizer)
        optimizer.step()

    for _ in range(6):
        for optimizer in (of_judge, of_judge, of_maker):
            learn(optimizer)
    (fact,) = looking.of("dropped")
    assert fact["model"] == "Net"
    assert 0 < fact["seconds"] < fact["backward"]
    assert fact["path"][-1][1] == "learn"


def test_a_loop_that_ends_meanwhile_is_not_waited_for(looking):
    train(looking, Net(), 3)
    assert flops.innermost_mode() is not None and looking.of("flops") == []
    looking.watcher.windows.overdue = time.monotonic()
    looking.see("~forward", Net(), None)
    assert flops.innermost_mode() is None
    (fact,) = looking.of("flops")
    assert (fact["cycles"], fact["flops"]) == (1, 2 * (2 * 4 * 3 * 2))


def test_what_was_counted_is_told_at_the_programs_end(looking):
    train(looking, Net(), 3)
    torch.ones(50, 50) @ torch.ones(50, 50)
    looking.watcher.windows._end()
    (fact,) = looking.of("flops")
    assert (fact["cycles"], fact["flops"]) == (1, 2 * (2 * 4 * 3 * 2))
    assert flops.innermost_mode() is None


def test_a_compiled_program_says_so_instead(looking, monkeypatch):
    monkeypatch.setattr(flops, "compiled", lambda: True)
    train(looking, Net(), 12)
    assert looking.of("flops") == [{"compiled": True, "look": 1}]
    assert [window["what"] for window in looking.of("window")] == ["modules"]


def test_a_mode_of_the_programs_own_is_waited_for(looking):
    optimizer = SimpleNamespace()
    for _ in range(2):
        looking.see("~optimizer", optimizer)
    own = flops.make_counter()
    with own:
        looking.see("~optimizer", optimizer)
        assert looking.of("flops") == []
    looking.see("~optimizer", optimizer)
    assert len(looking.of("flops")) == 1
    assert looking.of("error") == []


def test_no_mode_is_opened_inside_one_of_the_programs_own(looking):
    own = flops.make_counter()
    with own:
        train(looking, Net(), 4)
        assert flops.innermost_mode() is own
    train(looking, Net(), 12)
    assert looking.of("flops") == looking.of("error") == []


def test_a_failure_closes_the_mode(looking, monkeypatch):
    optimizer = SimpleNamespace()
    looking.see("~optimizer", optimizer)
    looking.see("~optimizer", optimizer)
    assert flops.innermost_mode() is not None
    monkeypatch.setattr(looking.watcher, "_note", None)
    looking.see("~optimizer", optimizer)
    assert flops.innermost_mode() is None


def test_no_look_is_taken_when_not_asked_for(watched):
    train(watched, Net(), 10)
    assert watched.of("flops") == watched.of("window") == []


def test_lines_that_copy_to_a_device_are_those_of_the_loop(looking):
    batch = torch.zeros(8)

    def to_device():
        looking.see("~transfer.to", batch, "cuda")

    to_device()  # as of a model, before the loop
    assert [fact["name"] for fact in looking.of("site")] == []
    net, optimizer = Net(), SimpleNamespace()
    for _ in range(16):
        to_device()
        net.layer(torch.ones(4, 3)).sum().backward()
        looking.see("~optimizer", optimizer)
    sites = {fact["name"]: fact["stack"][1][1] for fact in looking.of("site")}
    assert sites["~transfer.to"] == "to_device"
    assert looking.of("error") == []
