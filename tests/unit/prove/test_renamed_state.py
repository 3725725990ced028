"""State of optimizers that only one side has under its name."""

from __future__ import annotations

from made_up_proofs import make_run, make_tensors

from unstall.optimize.sameness import ObservedTensor
from unstall.prove.renamed_state import between, without


def keeping(*names):
    states = [ObservedTensor(f"state.0.0.{name}.0", 24, "float32", (1,), b"", b"\0" * 4) for name in names]
    return make_run(tensors=[*make_tensors(), *states])


def test_what_only_one_side_has_is_left_out_of_both():
    own, torchs = keeping("mean", "square", "step"), keeping("exp_avg", "exp_avg_sq", "step")
    renamed = between(own, torchs)
    assert {name.split(".")[3] for name in renamed} == {"mean", "square", "exp_avg", "exp_avg_sq"}
    for run in (own, torchs):
        assert [tensor.what for tensor in without(renamed, run).tensors] == ["output.0", "state.0.0.step.0"]


def test_the_same_names_and_an_optimizer_that_keeps_nothing_are_compared_as_they_are():
    assert not between(keeping("mean"), keeping("mean"))
    assert not between(keeping("mean"), keeping())
    run = keeping("mean")
    assert without(frozenset(), run) is run
