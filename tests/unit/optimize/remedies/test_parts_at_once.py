"""Parts of a tensor, taken at once: the same values and gradients as torch gives, wherever a loop asks for them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from optimize_builders import make_context, make_measurement, make_module, make_report

from unstall.optimize.remedies.parts_at_once import REMEDY
from unstall.optimize.rewrites.parts_at_once import sliced_once, sliced_tensors
from unstall.optimize.runtime.tensor_parts import _TensorParts
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable
from unstall.records.model import OperatorLine
from unstall.records.observations import Frame

CELL = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        feats = x * 2
        h = feats.new_zeros(feats.shape[0])
        for t in range(feats.shape[1]):
            h = h + feats[:, t].sum(-1) * t
        return h
"""


def rewritten(source, line):
    module = make_module(source)
    (whole,) = sliced_tensors(module, line)
    return sliced_once(module, whole).code


def gradient(source):
    space: dict = {}
    exec(compile(source, "net.py", "exec"), space)
    x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
    out = space["Net"]()(x)
    out.sum().backward()
    return out, x.grad


def test_the_parts_are_taken_before_the_loop_and_nothing_else_changes():
    changed = rewritten(CELL, 9)
    assert (
        "        feats_parts = _TensorParts(feats)\n"
        "        for t in range(feats.shape[1]):\n"
        "            h = h + feats_parts[:, t].sum(-1) * t\n"
    ) in changed
    for before, after in zip(gradient(CELL), gradient(changed)):
        assert torch.equal(before, after)


def test_a_comment_above_the_loop_stays_above_what_belongs_to_it():
    changed = rewritten(CELL.replace("        for t", "        # each step\n        for t"), 10)
    assert "        # each step\n        feats_parts = _TensorParts(feats)\n        for t in" in changed


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("feats[:, t]", "feats.select(1, t)", 9),
        ("feats[:, t]", "feats.narrow(1, t, 1)[:, 0]", 9),
        ("feats[:, t]", "feats[:, t : t + 1][:, 0]", 9),
        ("feats[:, t]", "feats[:, t, :]", 9),
        ("feats[:, t]", "feats[..., t, :]", 9),
        ("feats[:, t]", "feats[:, -1 - t]", 9),
        ("feats = x * 2", "feats, feats_parts = x * 2, 1", 9),
    ],
)
def test_every_spelling_has_the_same_gradient(old, new, line):
    source = CELL.replace(old, new)
    changed = rewritten(source, line)
    assert "_TensorParts(feats)" in changed
    for before, after in zip(gradient(source), gradient(changed)):
        assert torch.equal(before, after)


def test_a_comprehension_and_loops_within_loops():
    source = CELL.replace(
        "            h = h + feats[:, t].sum(-1) * t\n",
        "            h = h + sum([feats[i, t].sum() for i in range(2)]) + feats[:, t].sum(-1)\n",
    )
    changed = rewritten(source, 9)
    assert changed.count("feats_parts[") == 2
    for before, after in zip(gradient(source), gradient(changed)):
        assert torch.allclose(before, after)


@pytest.mark.parametrize(
    "change",
    [
        ("            h = h", "            feats = feats + 1\n            h = h"),  # another one in each turn
        ("            h = h", "            feats += 1\n            h = h"),
        ("        for t in range(feats.shape[1]):\n            ", "        t = 0\n        "),  # no loop
        ("feats[:, t]", "x.T[:, t]"),
    ],
)
def test_what_is_no_whole(change):
    source = CELL.replace(*change)
    assert source != CELL
    line = next(number for number, line in enumerate(source.splitlines(), 1) if "h = h +" in line)
    assert list(sliced_tensors(make_module(source), line)) == []


@pytest.mark.parametrize("inner", ["feats[:, t] = 0", "feats.mul_(2)", "torch.exp(h, out=feats)"])
def test_what_the_loop_changes_is_left_alone(inner):
    source = CELL.replace("            h = h", f"            {inner}\n            h = h")
    module = make_module(source)
    (whole,) = sliced_tensors(module, 10)
    with pytest.raises(AnalysisRefused, match="line 9 may change feats"):
        sliced_once(module, whole)


KEYS = st.one_of(
    st.integers(-4, 3),
    st.just(slice(None)),
    st.builds(slice, st.integers(-1, 4), st.integers(0, 5)),
    st.builds(slice, st.integers(0, 3), st.integers(0, 5), st.integers(1, 2)),
    st.just(Ellipsis),
    st.none(),
    st.just([0, 1]),
    st.just(True),
)


def outcome(ask):
    try:
        return ask()
    except (IndexError, TypeError, RuntimeError, ValueError) as error:
        return type(error)


@given(key=st.one_of(KEYS, st.lists(KEYS, max_size=4).map(tuple)), grad=st.booleans(), again=st.booleans())
def test_any_key_gives_what_torch_gives(key, grad, again):
    whole = torch.arange(60.0).reshape(3, 4, 5).requires_grad_(grad)
    parts = _TensorParts(whole)
    if again:
        outcome(lambda: parts[key])
    one, other = outcome(lambda: whole[key]), outcome(lambda: parts[key])
    assert type(one) is type(other)
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, other) and one.stride() == other.stride() and one.requires_grad == other.requires_grad
        if grad:
            assert torch.equal(*(torch.autograd.grad(each.sum(), whole)[0] for each in (one, other)))


@given(dim=st.integers(-4, 3), start=st.integers(-5, 6), length=st.integers(-1, 5))
def test_narrow_and_select_give_what_torch_gives(dim, start, length):
    whole = torch.arange(60.0).reshape(3, 4, 5).requires_grad_()
    parts = _TensorParts(whole)
    for name, given_ in (("narrow", (dim, start, length)), ("select", (dim, start))):
        one = outcome(lambda name=name, given_=given_: getattr(whole, name)(*given_))
        other = outcome(lambda name=name, given_=given_: getattr(parts, name)(*given_))
        assert one is other or torch.equal(one, other)


def proposals(tmp_path, *, node="SelectBackward0", backward_s=9.0, source=CELL):
    path = tmp_path / "train.py"
    path.write_text(source)
    phases = {"forward": 0.3, "backward": 0.6, "optimizer": 0.1}
    operators = [
        OperatorLine((Frame("main", str(path), 1), Frame("forward", str(path), 9)), 1.0, backward_s, node),
        OperatorLine((), 0.0, 1.0, "torch::autograd::AccumulateGrad"),
    ]
    context = make_context(
        tmp_path,
        report=make_report(phases=phases),
        measurement=make_measurement(phases=phases, operators=operators),
    )
    return REMEDY.propose(context)


def test_it_is_proposed_where_the_gradient_of_slices_takes_time(tmp_path):
    (proposal,) = proposals(tmp_path)
    assert proposal.title == "the parts of feats at once (train.py:8)"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.6 * 0.9 * 0.9))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"node": "MulBackward0"}, "no line of your own"),
        ({"backward_s": 0.01}, "take 0.6 % of the step"),
        ({"source": CELL.replace("feats[:, t]", "x[:, t]").replace("range(feats", "range(x")}, None),
        ({"source": CELL.replace("            h = h", "            feats.mul_(2)\n            h = h")}, "no line"),
    ],
)
def test_it_says_why_not(tmp_path, change, reason):
    if reason is None:
        assert proposals(tmp_path, **change)[0].key == "train.py:Net.forward:x"  # an argument, as good as another
        return
    with pytest.raises(NotApplicable, match=reason):
        proposals(tmp_path, **change)
