"""Batches copied ahead: in order, to the end, with their errors at their turn; and where that is written."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from unstall.optimize.batches import NotClear
from unstall.optimize.case import Call, Made, Unfit
from unstall.optimize.remedies import device_prefetch
from unstall.optimize.sources import Sources
from unstall.records.measurements import Site

torch = pytest.importorskip("torch")

gpu = pytest.mark.gpu
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

TRAIN = """import torch
from torch.utils.data import DataLoader

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def train(model, loader, epochs):
    for epoch in range(epochs):
        for step, (x, y) in enumerate(loader):  # each batch
            x, y = x.to(device), y.to(device)
            model(x, y)


loader = DataLoader(
    data,
    num_workers=2,
    batch_size=4,
)
train(model, loader, 2)
"""


def ahead():
    """The definition that is written, and the module it is in."""
    space = {"torch": torch}
    exec(device_prefetch.DEFINITION, space)
    return space["_ahead"], space


# ------------------------------------------------------------------ where it is written


def case_of(path, *, share=0.3, device="cuda:0", workers=2, pinned=False, copies=None, line=10, over=9):
    sites = [Site("~transfer.to", str(path), "train", line), Site("~data.iter", str(path), "train", over)]
    measurement = SimpleNamespace(model=SimpleNamespace(device=device), sites=sites, loader=None)
    loader = Made(
        Call(path, 14, "<module>", (14, 18, 9, 1)), {"num_workers": workers, "pin_memory": pinned, "batch_size": 4}
    )
    trace = None if copies is None else SimpleNamespace(device={"copies": copies})
    return SimpleNamespace(
        measurement=measurement, sources=Sources(), report=SimpleNamespace(trace=trace),
        probe=SimpleNamespace(loaders=(loader,)), share=lambda *phases: share,
        user_file=lambda name: Path(name) if name == str(path) or name == path else None,
    )  # fmt: skip


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return path


def test_the_loop_and_the_loader_are_changed_and_nothing_else(script):
    (proposal,) = device_prefetch.propose(case_of(script))
    text = proposal.sources.bytes_of(script).decode()
    assert "        for step, (x, y) in enumerate(_ahead(loader, device, (0, 1))):  # each batch\n" in text
    assert "    batch_size=4,\n    pin_memory=True,\n)" in text
    rest = text.replace(device_prefetch.DEFINITION, "").replace("    pin_memory=True,\n", "")
    rest = rest.replace("_ahead(loader, device, (0, 1))", "loader")
    assert rest.split() == TRAIN.split()
    assert proposal.exactness == "exact" and proposal.predicted == pytest.approx(1 / 0.73)


def test_it_is_not_written_twice_nor_over_a_name_of_the_program(script):
    (proposal,) = device_prefetch.propose(case_of(script))
    again = case_of(script)
    script.write_bytes(proposal.sources.bytes_of(script))
    lines = script.read_text().splitlines()
    again.measurement.sites = [
        Site(seam, str(script), "train", 1 + next(n for n, one in enumerate(lines) if text in one))
        for seam, text in (("~transfer.to", "x, y = x.to"), ("~data.iter", "for step,"))
    ]
    assert "already" in device_prefetch.propose(again).reason
    script.write_text(TRAIN.replace("\n\ndevice", "\n_ahead = 1\ndevice"))
    assert "the name _ahead" in device_prefetch.propose(case_of(script)).reason


def test_pinned_batches_stay_as_they_are(script):
    (proposal,) = device_prefetch.propose(case_of(script, pinned=True))
    assert b"pin_memory" not in proposal.sources.bytes_of(script).replace(device_prefetch.DEFINITION.encode(), b"")


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"device": "cpu"}, "no GPU"),
        ({"share": 0.01}, "1 % of the step"),
        ({"workers": 0}, "makes its batches itself"),
        ({"over": 30}, "something else than a DataLoader"),
        ({"line": 4}, "outside of a loop"),
    ],
)
def test_where_it_does_not_pay_or_is_not_known(script, facts, why):
    found = device_prefetch.propose(case_of(script, **facts))
    assert isinstance(found, Unfit) and why in found.reason


def test_a_trace_sees_copies_that_the_program_does_not_wait_for(script):
    (proposal,) = device_prefetch.propose(case_of(script, share=0.0, copies=0.4))
    assert proposal.predicted == pytest.approx(1 / 0.64)
    assert device_prefetch.predict(0.8) == pytest.approx(1 / 0.8), "copies are then what takes longest"


def test_a_loop_that_copies_in_another_way_is_left_alone():
    text = "import torch\nit = iter(loader)\nfor x in iter(loader):\n    x = x.cuda()\n"
    with pytest.raises(NotClear, match="something else"):
        device_prefetch.loop_at(text, Path("train.py"), 4, {3})


def test_the_changed_program_computes_the_same(tmp_path):
    path = tmp_path / "train.py"
    program = TRAIN.partition("loader = DataLoader")[0] + "train(model, loader, 2)\n"
    path.write_text(program)
    loop = device_prefetch.loop_at(program, path, 10, {9})
    changed = device_prefetch.with_ahead(Sources(), [loop]).bytes_of(path).decode()
    seen = {}
    for name, text in (("before", program), ("after", changed)):
        data = [(torch.arange(3) + n, torch.tensor(n)) for n in range(4)]
        calls = seen[name] = []
        exec(text, {"loader": data, "model": lambda x, y, calls=calls: calls.append((x.tolist(), y.item()))})
    assert seen["before"] == seen["after"] and len(seen["after"]) == 8


# ------------------------------------------------------------------ what is written, on other devices


BATCHES = [
    torch.ones(2),
    (torch.ones(2), torch.zeros(1)),
    [torch.ones(2), "name"],
    {"x": torch.ones(2), "id": 3},
    "text",
]


def test_on_other_devices_the_batches_pass_through():
    each, _ = ahead()
    got = list(each(BATCHES, "cpu"))
    assert len(got) == len(BATCHES) and all(a is b for a, b in zip(got, BATCHES))


# ------------------------------------------------------------------ what is written, with a stand-in for a GPU


class Tensor:
    """A value with a place; copying it is told."""

    def __init__(self, value, log, where="cpu"):
        self.value, self.log, self.where = value, log, where

    def to(self, device, non_blocking):
        assert non_blocking
        self.log.append(f"copy {self.value} on {Streams.now}")
        return Tensor(self.value, self.log, "cuda")

    def record_stream(self, stream):
        self.log.append(f"record {self.value} on {stream.name}")


class Streams:
    """What torch.cuda has of streams."""

    now = "main"

    def __init__(self, log):
        self.log = log

    def Stream(self, device):
        return SimpleNamespace(name="side")

    def current_stream(self, device):
        return SimpleNamespace(name="main", wait_stream=lambda other: self.log.append(f"wait for {other.name}"))

    @contextlib.contextmanager
    def stream(self, one):
        Streams.now, before = one.name, Streams.now
        yield
        Streams.now = before


@pytest.fixture
def standin():
    log = []
    each, space = ahead()
    space["torch"] = SimpleNamespace(
        device=lambda name: SimpleNamespace(type=name.partition(":")[0]), Tensor=Tensor, cuda=Streams(log)
    )
    return each, log


def made(log, count, failure=None):
    """Batches of a loader, which may fail after the last."""
    for number in range(count):
        log.append(f"make {number}")
        yield Tensor(number, log), number
    if failure is not None:
        raise failure


def test_each_copy_is_begun_before_the_step_of_the_batch_before(standin):
    each, log = standin
    for x, y in each(made(log, 3), "cuda"):
        assert x.where == "cuda" and x.value == y
        log.append(f"step {y}")
    copies = [line for line in log if not line.startswith(("make", "record"))]
    assert copies == [
        "copy 0 on side", "wait for side",
        "copy 1 on side", "step 0", "wait for side",
        "copy 2 on side", "step 1", "wait for side",
        "step 2",
    ]  # fmt: skip
    assert [line for line in log if line.startswith("record")] == [f"record {n} on main" for n in range(3)]
    assert Streams.now == "main"


@pytest.mark.parametrize("count", [0, 1, 2])
def test_short_epochs_end_as_they_do(standin, count):
    each, log = standin
    assert [y for _, y in each(made(log, count), "cuda")] == list(range(count))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_error_of_the_loader_comes_at_its_turn(standin, count):
    each, log = standin
    batches = each(made(log, count, ValueError("broken")), "cuda:1")
    assert [next(batches)[1] for _ in range(count)] == list(range(count))
    with pytest.raises(ValueError, match="broken"):
        next(batches)


def test_leaving_the_loop_early_lets_go_of_the_loader_and_of_later_errors(standin):
    each, log = standin
    ended = []

    def watched():
        try:
            yield from made(log, 2, ValueError("never reached"))
        finally:
            ended.append(True)

    for _, y in each(watched(), "cuda"):
        if y == 1:
            break
    assert ended == [True]


def test_only_the_parts_that_the_loop_copies_are_copied(standin):
    each, log = standin
    a, b = Tensor("a", log), Tensor("b", log)

    def one(batch, *parts):
        (got,) = each([batch], "cuda", *parts)
        return got

    places = [value.where for value in one((a, b), (0,))]
    assert places == ["cuda", "cpu"]
    assert type(one([a, b])) is list and [value.where for value in one([a, b])] == ["cuda", "cuda"]
    named = one({"x": a, "length": b, "id": 7}, ("x",))
    assert (named["x"].where, named["length"].where, named["id"]) == ("cuda", "cpu", 7)
    assert one(a).where == "cuda" and one("text") == "text"
    own = SimpleNamespace(x=a)
    assert one(own) is own and one(own, (0,)) is own, "what the loop copies in its own way is left to it"


# ------------------------------------------------------------------ what is written, on a GPU


@gpu
@needs_gpu
@pytest.mark.parametrize("pin", [False, True])
def test_on_a_gpu_the_batches_are_the_same_and_in_order(pin):
    each, _ = ahead()
    data = torch.utils.data.TensorDataset(torch.randn(512, 1024), torch.arange(512))
    loader = torch.utils.data.DataLoader(data, batch_size=32, num_workers=2, pin_memory=pin)
    weight = torch.randn(1024, 1024, device="cuda")
    for _ in range(2):
        wanted = [(x.cuda() @ weight, y) for x, y in loader]
        got = []
        for x, y in each(loader, "cuda", (0,)):
            assert x.is_cuda and not y.is_cuda
            got.append((x @ weight, y))
        torch.cuda.synchronize()
        assert len(got) == len(wanted)
        assert all(torch.equal(a, c) and torch.equal(b, d) for (a, b), (c, d) in zip(got, wanted))


@gpu
@needs_gpu
def test_on_a_gpu_memory_is_not_given_again_while_a_step_still_reads_it():
    each, _ = ahead()
    batches = [torch.full((1 << 20,), float(n)).pin_memory() for n in range(40)]
    slow = torch.randn(2048, 2048, device="cuda")
    sums = []
    for x in each(batches, torch.device("cuda")):
        for _ in range(4):
            slow = slow @ slow / 2048
        sums.append(x.double().mean() + 0 * slow[0, 0].double().nan_to_num(0, 0, 0))
        del x
    assert [round(one.item()) for one in sums] == list(range(40))
