"""Results that are kept: bit for bit what is computed, whatever happens to what it is computed from."""

from __future__ import annotations

import libcst as cst
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from optimize_builders import make_context, make_measurement, make_module, make_report

from unstall.optimize.remedies.keep_results import REMEDY
from unstall.optimize.rewrites.keep_results import layer_calls, with_kept_calls, with_kept_method
from unstall.optimize.runtime.kept_results import _kept_results, _KeptResults
from unstall.optimize.runtime.same_bits import _have_same_bits
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable
from unstall.records.model import OperatorLine, Recomputation
from unstall.records.observations import Frame

ATTENTION = """import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(4, 4), nn.Linear(4, 4)

    def heads(self, x):
        return x.unflatten(-1, (2, 2))

    def forward(self, x, memory):
        return self.query(x) @ self.heads(self.key(memory)).flatten(-2).mT
"""

PACKED = """import torch
from torch import nn


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.arange(12, dtype=torch.uint8).reshape(3, 4)
        self.scale = 0.5

    def dense(self):
        return (self.weight.float() - 1) * self.scale

    def forward(self, x):
        return x @ self.dense()
"""


class Counting(torch.nn.Linear):
    """A layer that says how often it computes."""

    def __init__(self):
        super().__init__(3, 3)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


@pytest.fixture
def layer(monkeypatch):
    monkeypatch.setattr(_KeptResults, "layers", (*_KeptResults.layers, Counting))
    return Counting()


def loaded(source):
    space: dict = {}
    exec(compile(source, "net.py", "exec"), space)
    return space


def kept(source):
    module = make_module(source)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "self.key(memory)" in text)
    return with_kept_calls(module, layer_calls(module, line)).code


def dense_of(module):
    return module.innermost(module.first_line(module.top_level(cst.ClassDef, "Packed")) + 7, cst.FunctionDef)


# ---------------------------------------------------------------- what goes into the patch


@pytest.mark.parametrize("inference", [False, True])
def test_the_same_values_are_computed_from_once(layer, inference):
    with torch.inference_mode(inference), torch.no_grad():
        x = torch.randn(2, 3)
        first = _KeptResults.of_layer(layer, x)
        assert _KeptResults.of_layer(layer, x.clone()) is first
        assert layer.calls == 1
        assert torch.equal(_KeptResults.of_layer(layer, x + 1), layer(x + 1))


def test_a_sign_of_zero_is_another_value(layer):
    with torch.no_grad():
        layer.bias.zero_()
        zeros = torch.zeros(1, 3)
        for x in (zeros, -zeros):
            _KeptResults.of_layer(layer, x)
    assert layer.calls == 2


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.uint8, torch.bool, torch.complex64]
)
def test_all_kinds_of_numbers_are_compared_wherever_they_lie(dtype):
    numbers = torch.arange(12).to(dtype)
    for start, end in ((0, 12), (1, 12), (3, 8), (5, 5)):
        one, other = numbers[start:end], numbers[start:end].clone()
        assert _have_same_bits(one, other)
        if len(one) > 1:
            other[1] = 0
            assert _have_same_bits(one, other) == torch.equal(one, other)


def test_where_gradients_are_computed_nothing_is_kept(layer):
    x = torch.randn(2, 3)
    for _ in range(2):
        _KeptResults.of_layer(layer, x).sum().backward()
    assert layer.calls == 2


@pytest.mark.parametrize("hook", ["register_forward_hook", "register_forward_pre_hook"])
def test_a_layer_that_is_looked_into_is_called(layer, hook):
    seen = []
    getattr(layer, hook)(lambda *given: seen.append(given))
    with torch.no_grad():
        for _ in range(3):
            _KeptResults.of_layer(layer, torch.ones(1, 3))
    assert len(seen) == layer.calls == 3


def test_others_are_called_as_they_are():
    dropout, double = torch.nn.Dropout(), torch.nn.Linear(3, 3)
    with torch.no_grad(), torch.autocast("cpu"):
        _KeptResults.of_layer(double, torch.ones(1, 3))
    with torch.no_grad():
        _KeptResults.of_layer(dropout, torch.ones(9))
        _KeptResults.of_layer(double, torch.ones(3, 3).t()[:2])
    assert not {dropout, double} & set(_KeptResults.latest)


CHANGES = (
    lambda layer, x, y: x.add_(1),
    lambda layer, x, y: x.data.mul_(2),
    lambda layer, x, y: x.zero_(),
    lambda layer, x, y: layer.weight.data.add_(1),
    lambda layer, x, y: layer.bias.copy_(torch.zeros(3)),
    lambda layer, x, y: setattr(layer, "weight", torch.nn.Parameter(torch.eye(3))),
    lambda layer, x, y: layer.load_state_dict({"weight": torch.ones(3, 3), "bias": torch.ones(3)}),
    lambda layer, x, y: y.add_(1),
    lambda layer, x, y: y[0].view(-1).zero_(),
    lambda layer, x, y: None,
)


@given(st.lists(st.sampled_from(CHANGES), max_size=12), st.booleans())
def test_whatever_changes_in_between_the_result_is_that_of_the_layer(changes, inference):
    layer = torch.nn.Linear(3, 3)
    with torch.inference_mode(inference), torch.no_grad():
        x = torch.randn(2, 3)
        for change in (CHANGES[-1], *changes):
            result = _KeptResults.of_layer(layer, x)
            assert torch.equal(result, layer(x)) and not result.requires_grad
            change(layer, x, result)


def test_a_method_keeps_what_it_computes_from_attributes():
    class Packed(torch.nn.Module):
        scale, calls = 2.0, 0

        @_kept_results("weight", "scale")
        def dense(self):
            """Unpacks."""
            self.calls += 1
            return self.weight.float() * self.scale

    packed, other = Packed(), Packed()
    for each in (packed, other):
        each.register_buffer("weight", torch.arange(6, dtype=torch.uint8))
    for value in (1, 1, 5, 5):
        packed.weight[0] = value
        assert packed.dense()[0] == value * 2
    packed.scale = 3.0
    assert packed.dense()[1] == 3 and other.dense()[1] == 2
    assert (packed.calls, other.calls, Packed.dense.__doc__) == (3, 1, "Unpacks.")


# ---------------------------------------------------------------- the patch


def test_calls_of_layers_are_kept_and_nothing_else_changes():
    changed = kept(ATTENTION)
    line = "        return _KeptResults.of_layer(self.query, x) @ self.heads(_KeptResults.of_layer(self.key, memory))"
    assert line in changed
    torch.manual_seed(0)
    one = loaded(ATTENTION)["Attention"]()
    other = loaded(changed)["Attention"]()
    other.load_state_dict(one.state_dict())
    with torch.no_grad():
        for _ in range(2):
            x, memory = torch.randn(1, 4), torch.randn(5, 4)
            for _ in range(2):
                assert torch.equal(one(x, memory), other(x, memory))


def test_a_method_that_unpacks_is_kept():
    module = make_module(PACKED)
    changed = with_kept_method(module, dense_of(module)).code
    assert '    @_kept_results("scale", "weight")\n    def dense(self):' in changed
    assert torch.equal(loaded(changed)["Packed"]()(torch.ones(1, 3)), loaded(PACKED)["Packed"]()(torch.ones(1, 3)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def dense(self):", "def dense(self, x=1):"),
        ("def dense(self):", "@torch.no_grad()\n    def dense(self):"),
        ("return (self.weight.float() - 1)", "return (self.weight.float() - torch.rand(4))"),
        ("return (self.weight.float() - 1)", "self.count = 1\n        return (self.weight.float() - 1)"),
        ("return (self.weight.float() - 1)", "return (self.weight.float().sub_(1))"),
        ("return (self.weight.float() - 1)", "return (self.unpack(self.weight) - 1)"),
        ("self.scale\n\n", "SCALE\n\n"),
        ("(nn.Module)", "(object)"),
    ],
)
def test_a_method_that_does_more_is_refused(old, new):
    source = PACKED.replace(old, new) + "\n\nSCALE = 1\n\n\ndef change():\n    global SCALE\n    SCALE = 2\n"
    assert source.count(new)
    module = make_module(source)
    with pytest.raises(AnalysisRefused):
        with_kept_method(module, dense_of(module))


# ---------------------------------------------------------------- when it is proposed


def proposals(tmp_path, source, line, *, again=0.5):
    path = tmp_path / "net.py"
    path.write_text(source)
    frames = (Frame("main", str(path), 1), Frame("forward", str(path), line))
    return REMEDY.propose(
        make_context(
            tmp_path,
            report=make_report(),
            measurement=make_measurement(
                operators=[OperatorLine(frames, 1.0, 0.0, again_s=0.8), OperatorLine((), 0.1, 0.0, again_s=0.2)],
                recomputation=Recomputation(frames, 1.0, 1.0, 9, 0.0, share=again, recurring=0.6),
            ),
        )
    )


@pytest.mark.parametrize(("source", "line", "name"), [(ATTENTION, 14, "forward"), (PACKED, 12, "dense")])
def test_it_is_proposed_where_something_is_computed_again(tmp_path, source, line, name):
    (proposal,) = proposals(tmp_path, source, line)
    assert proposal.title == f"{name} keeps what it computes (net.py:{line})"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.5 * 0.8 * 0.8))


def test_it_says_why_not(tmp_path):
    with pytest.raises(NotApplicable, match=r"takes 0\.8 % of the step"):
        proposals(tmp_path, ATTENTION, 14, again=0.01)
    with pytest.raises(NotApplicable, match="no line of your own"):
        REMEDY.propose(make_context(tmp_path, measurement=make_measurement()))
