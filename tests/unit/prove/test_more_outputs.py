"""Outputs that only models of the change have."""

from __future__ import annotations

import pytest
from made_up_proofs import make_run, make_tensors, prove

from unstall.optimize.sameness import ObservedTensor
from unstall.prove.more_outputs import NOTE, without


def observed(*names, value=0):
    return [ObservedTensor(name, 0, "float32", (1,), bytes([value]), bytes([value] * 4)) for name in names]


@pytest.mark.parametrize(
    ("original", "changed"),
    [
        ("o0 l0 o0 l0", "o0 o1 l0 o0 o1 o2 l0"),
        ("o0 o1 l0", "o0 o1 o2 l0"),
        ("o0 o0", "o0 o1 o0 o1"),
        ("o0", "o0 o1"),
    ],
)
def test_what_comes_after_the_last_one_of_a_call_is_left_out(original, changed):
    original, changed = (make_run(tensors=observed(*names.split())) for names in _full(original, changed))
    assert [tensor.what for tensor in without(original, changed).tensors] == [t.what for t in original.tensors]


@pytest.mark.parametrize(
    ("original", "changed"),
    [
        ("o0 l0", "o0 l0"),
        ("o0 o1 l0", "o0 l0"),  # one less
        ("l0", "o0 l0"),  # another call
        ("o0 l0", "o0 o0 l0"),
        ("o0 o1", "o0 l0 o1"),
    ],
)
def test_all_else_stays(original, changed):
    original, changed = (make_run(tensors=observed(*names.split())) for names in _full(original, changed))
    assert without(original, changed) is changed


def _full(*runs):
    return [run.replace("o", "output.").replace("l", "loss.") for run in runs]


@pytest.mark.parametrize(("value", "verdict"), [(0, "proven"), (1, "different")])
def test_a_model_may_give_more_but_nothing_else(value, verdict):
    def giving(plan, more=(), first=0, **given):
        return make_run(tensors=[*make_tensors((1.0 + first, 2.0)), *more, *observed("loss.0")], **given)

    mask = observed("output.1", value=7)
    proof, _ = prove(giving, lambda plan: giving(plan, mask, value, seconds=5.0))
    assert proof.verdict == verdict
    assert NOTE in proof.known_by
