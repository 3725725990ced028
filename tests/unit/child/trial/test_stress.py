"""Models whose outputs go astray."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unstall.child.trial.stress import astray
from unstall.optimize.equivalence import read

from .test_account import run_under

PROGRAM = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    for step in range(3):
        logits = model(x)
        loss = LOSS
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
STABLE = "nn.functional.cross_entropy(logits, y)"
HIDDEN = "nn.functional.cross_entropy(logits, y, reduction='none').nansum()"
PLAIN = "(logits.exp().sum(1).log() - logits[range(16), y]).mean()"


def losses(tmp_path, loss, plan):
    (tmp_path / "program").mkdir()
    clock = {"kind": "optimizer", "warmup": 0, "steps": 1, "seconds": None}
    plan = {"clock": clock, "observe": {"whole": True}, **plan}
    _, folder = run_under(plan, PROGRAM.replace("LOSS", loss), tmp_path / "program")
    return [float(tensor.array()[0]) for tensor in read(folder / "observed.bin") if tensor.what == "loss.0"]


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("loss", "overflows"), [(STABLE, False), (PLAIN, True)])
def test_a_loss_that_subtracts_no_maximum_overflows(tmp_path, loss, overflows):
    value, *_ = losses(tmp_path, loss, {"stress": {"factor": 1000.0}})
    assert (value == float("inf")) == overflows


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("loss", "is_number"), [(STABLE, False), (HIDDEN, True)])
def test_a_loss_that_leaves_out_what_is_no_number_hides_it(tmp_path, loss, is_number):
    value, *_ = losses(tmp_path, loss, {"stress": {"nan": True}})
    assert (value == value) == is_number


SCALING = """nn.functional.cross_entropy(logits, y)
        class Own(torch.autograd.Function):
            @staticmethod
            def forward(context, given):
                return given * 1.0
            @staticmethod
            def backward(context, gradient):
                return torch.ones(())
        loss = Own.apply(loss)"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("loss", "as_large"), [(STABLE, False), (SCALING, True)])
def test_gradients_of_a_part_of_a_loss_are_that_part_unless_they_forget_it(tmp_path, loss, as_large):
    sizes = []
    for number, plan in enumerate(({}, {"stress": {"loss": 0.25}})):
        (folder := tmp_path / str(number) / "program").mkdir(parents=True)
        clock = {"kind": "optimizer", "warmup": 0, "steps": 1, "seconds": None}
        plan = {"clock": clock, "observe": {"whole": True, "gradients": True}, **plan}
        _, written = run_under(plan, PROGRAM.replace("LOSS", loss), folder)
        first = next(each for each in read(written / "observed.bin") if each.what.startswith("gradients."))
        sizes.append(float(np.linalg.norm(first.array())))
    assert sizes[1] / sizes[0] == pytest.approx(1.0 if as_large else 0.25, rel=1e-3)


def test_single_numbers_whole_numbers_and_all_that_is_no_tensor_stay_as_they_are():
    given = {"loss": torch.tensor(2.0), "labels": torch.tensor([1, 2]), "text": "a", "x": [torch.ones(2), None]}
    found = astray(given, lambda tensor: tensor * 10.0)
    assert found["loss"] == 2 and found["labels"].tolist() == [1, 2] and found["text"] == "a"
    assert found["x"][0].tolist() == [10, 10] and found["x"][1] is None


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("before_step", "is_number"),
    [("pass", False), ("[p.grad.nan_to_num_(0.0) for p in model.parameters()]", True)],
)
def test_gradients_are_no_numbers_either(tmp_path, before_step, is_number):
    program = PROGRAM.replace("optimizer.step()", f"{before_step}; optimizer.step()").replace("LOSS", STABLE)
    clock = {"kind": "optimizer", "warmup": 0, "steps": 1, "seconds": None}
    _, folder = run_under({"clock": clock, "observe": {"whole": True}, "stress": {"nan": True}}, program, tmp_path)
    weights = [tensor for tensor in read(folder / "observed.bin") if tensor.is_weights and tensor.step == 1]
    assert weights and all(np.isfinite(tensor.array()).all() == is_number for tensor in weights)


@pytest.mark.timeout(240)
def test_gradients_that_an_optimizer_is_given_are_written_down(tmp_path):
    program = PROGRAM.replace("optimizer.step()", "nn.utils.clip_grad_norm_(model.parameters(), 0.1); optimizer.step()")
    clock = {"kind": "optimizer", "warmup": 0, "steps": 1, "seconds": None}
    observe = {"whole": True, "gradients": True}
    plan = {"clock": clock, "observe": observe, "stress": {"factor": 0.001}}
    _, folder = run_under(plan, program.replace("LOSS", STABLE), tmp_path)
    gradients = [t for t in read(folder / "observed.bin") if t.what.startswith("gradients.") and not t.step]
    assert len(gradients) == 4
    assert 0 < sum(float((tensor.array() ** 2).sum()) for tensor in gradients) < 1e-4
