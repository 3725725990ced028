"""The time of operators in backward, at the lines whose gradients they compute: a real model, a clock of the test's."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from unstall.child import op_times
from unstall.child.recomputation import Call

torch = pytest.importorskip("torch", reason="times the operators of torch")
dispatch = pytest.importorskip("torch.utils._python_dispatch")

PROGRAM = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(50, 4)

    def forward(self, ids):
        rows = self.table(ids)
        return sum(rows[:, place].exp().sum() for place in range(3))


def step(net, ids):
    loss = net(ids)
    loss.backward()
"""


class Clock(dispatch.TorchDispatchMode):
    """Each operator takes a second."""

    def __init__(self):
        super().__init__()
        self.times = op_times.of_this_torch()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.times.add(1.0, sys._getframe(1), Call(func, args, kwargs or {}, out))
        return out


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(PROGRAM)
    module = types.ModuleType("net")
    exec(compile(PROGRAM, path, "exec"), module.__dict__)
    return module


def told(net, ids, step):
    with Clock() as clock:
        step(net, ids)
    return clock.times.facts()


def test_lines_without_gradients_are_told_apart_with_their_costliest_operator(program):
    with Clock() as clock, torch.no_grad():
        for _ in range(3):
            program.Net()(torch.arange(6).view(2, 3))
    clock.times.add(0.01, None, Call(torch.ops.aten.exp.default, (torch.zeros(1),), {}, torch.zeros(1)))
    lines = clock.times.other_facts()
    by_function = {each["path"][-1][1]: each for each in lines}
    slices = by_function["<genexpr>"]
    assert slices["calls"] == slices["forward"] == 3 * 3 * 3  # in three calls, of each of three parts: select, exp, sum
    assert slices["operator"] in ("aten.select.int", "aten.exp.default", "aten.sum.default")
    assert lines == sorted(lines, key=lambda each: -each["forward"])
    assert not any(each["path"] in [other["path"] for other in clock.times.facts()] for each in lines)


def line_of(snippet):
    return next(number for number, line in enumerate(PROGRAM.splitlines(), 1) if snippet in line)


def test_each_gradient_is_put_down_to_the_line_of_its_operator(program):
    lines = told(program.Net(), torch.zeros(2, 3, dtype=torch.long), program.step)
    by_line = {each["path"][-1][2] if each["path"] else 0: each for each in lines}
    slices, table = by_line[line_of("rows[:, place]")], by_line[line_of("self.table(ids)")]
    assert ("step", line_of("loss = net(ids)")) in [frame[1:] for frame in slices["path"]]
    assert slices["path"][-1][0].endswith("net.py")
    # For each part: of exp a product, of the slice a tensor of the whole with the part in it; and adding these up.
    assert slices["backward"] > 3 * 3
    assert table["node"] == "EmbeddingBackward0"
    assert line_of("loss.backward()") not in by_line
    assert lines == sorted(lines, key=lambda each: -each["backward"])


DECODER = """
def attend(x, memory, weight):
    keys = memory @ weight
    return x @ keys.t()


def decode(words, memory, weight):
    return [attend(x, memory, weight) for x in words]


def twice(words, memory, weight):
    memory.exp()
    first = decode(words, memory, weight)
    return first, again(words, memory, weight)


def again(words, memory, weight):
    return decode(words, memory, weight)
"""


@pytest.fixture
def decoder(tmp_path):
    path = tmp_path / "decoder.py"
    path.write_text(DECODER)
    space = {}
    exec(compile(DECODER, path, "exec"), space)
    return space


def decoded(function, cycles=1):
    words, memory, weight = [torch.randn(1, 4) for _ in range(3)], torch.randn(9, 4), torch.randn(4, 4)
    with Clock() as clock:
        for cycle in range(cycles):
            if cycle:
                clock.times.next_cycle()
            function(words, memory, weight)
    return clock.times.recomputed()


def test_what_is_computed_again_is_told_by_its_line(decoder):
    told = decoded(decoder["decode"])
    assert (told["again"], told["operators"], told["there"]) == (2, 2, 1)
    assert told["path"][-1][1:] == ("attend", 3)
    assert told["recurring"] < told["computed"]


def test_a_call_that_computes_nothing_new_is_told_itself(decoder):
    told = decoded(decoder["twice"])
    assert told["again"] == 2 + 2 * 3
    assert told["recurring"] == told["computed"] - 1
    assert told["path"][-1][1:] == ("twice", 14)


def test_a_later_cycle_shows_what_the_first_has_computed(decoder):
    assert decoded(decoder["decode"], cycles=4)["again"] == 2 * 3
    assert decoded(lambda *_: None) is None


def test_backward_is_computed_again_with_its_line(decoder):
    def step(words, memory, weight):
        weight.requires_grad_()
        sum(scores.sum() for scores in decoder["decode"](words, memory, weight)).backward()

    told = decoded(step)
    assert told["again"] >= 2 and 0 < told["backward"] < told["of"]


def test_without_backward_there_is_nothing_to_tell(program):
    with torch.no_grad():
        lines = told(program.Net(), torch.zeros(2, 3, dtype=torch.long), lambda net, ids: net(ids))
    assert [(each["backward"], each["node"]) for each in lines if each["backward"] or not each["again"]] == []


def test_what_no_line_of_the_program_calls_has_no_path():
    source = "def step(x, _):\n    (x * 2).sum().backward()\n"
    space: dict = {}
    exec(compile(source, str(Path(torch.__file__).parent / "library.py"), "exec"), space)
    x = torch.ones(3, requires_grad=True)
    with Clock() as clock:
        space["step"](x, None)
    assert [each["path"] for each in clock.times.facts() if not each["path"]] == [()]
    assert x.grad.tolist() == [2.0] * 3


def test_more_lines_than_are_kept_are_one():
    times = op_times.OperatorTimes(torch._C, most_lines=1)
    x = torch.ones(3, requires_grad=True)
    for source in ("def f(x): return x.exp()", "def g(x): return x.sin()", "def h(x): return x.cos()"):
        space: dict = {}
        exec(compile(source, f"/program/{source[4]}.py", "exec"), space)

        class Timed(dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                out = func(*args, **(kwargs or {}))
                times.add(1.0, sys._getframe(1), Call(func, args, kwargs or {}, out))
                return out

        with Timed():
            space[source[4]](x).sum().backward()
    assert len(times.facts()) <= 2


def test_a_torch_that_tells_nothing_is_not_asked():
    with pytest.raises(AttributeError):
        op_times.OperatorTimes(types.SimpleNamespace())
