"""Gradients are switched off only where nothing asks for them."""

from __future__ import annotations

import pytest
from optimize_builders import make_context, make_measurement, make_module, make_report

from unstall.optimize.remedies.no_grad import REMEDY, with_gradients_off, with_no_grad
from unstall.optimize.source.errors import NotApplicable
from unstall.records.model import DroppedGradients, ModelMeasurement
from unstall.records.observations import Frame

VALIDATE = "import torch\n\n\ndef validate(model, loader):\n    for x in loader:\n        {}\n"


def test_no_grad_only_around_a_loop_that_never_goes_backward():
    code = with_no_grad(make_module(VALIDATE.format("model(x)")), "validate", 6).code
    assert "@torch.no_grad()\ndef validate" in code
    with pytest.raises(NotApplicable):
        with_no_grad(make_module(VALIDATE.format("model(x).backward()")), "validate", 6)


def test_torch_by_another_name():
    module = make_module(VALIDATE.format("model(x)").replace("import torch", "import torch as th"))
    assert "@th.no_grad()\ndef validate" in with_no_grad(module, "validate", 6).code


def test_a_script_that_never_asks_for_gradients():
    code = with_gradients_off(make_module("import torch\n\nfor x in y:\n    model(x)\n")).code
    assert code.startswith("import torch\n\ntorch.set_grad_enabled(False)\n\nfor x")
    with pytest.raises(NotApplicable):
        with_gradients_off(make_module("import torch\n\nfor x in y:\n    model(x).sum().backward()\n"))


def test_a_function_without_a_loop_where_nothing_trains():
    module = make_module("import torch\n\n\ndef score(model, x):\n    return model(x)\n")
    with pytest.raises(NotApplicable):
        with_no_grad(module, "score", 5)
    assert "@torch.no_grad()\ndef score" in with_no_grad(module, "score", 5, loop=False).code


STEP = """import torch


def step(teacher, student, x):
    if x is not None:
        # what is to be learned
        target = teacher(x)
    loss = (student(x) - target).square().mean()
    loss.backward()
"""


def of_teacher(tmp_path, source, line):
    path = tmp_path / "train.py"
    path.write_text(source)
    phases = {"forward": 0.4, "backward": 0.6}
    dropped = DroppedGradients((Frame("step", str(path), line),), "Teacher", 0.5, never=True)
    measurement = make_measurement(phases=phases, model=ModelMeasurement(dropped=dropped))
    return REMEDY.propose(make_context(tmp_path, report=make_report(phases=phases), measurement=measurement))


def test_a_call_whose_gradients_nothing_uses_records_none(tmp_path):
    (proposal,) = of_teacher(tmp_path, STEP, 7)
    changed = proposal.sources.module(tmp_path / "train.py").tree.code
    assert (
        "        # what is to be learned\n        with torch.no_grad():\n            target = teacher(x)\n    loss"
    ) in changed
    assert proposal.predicted == pytest.approx(1 / 0.7)


@pytest.mark.parametrize("line", ["        target = teacher(x); y = 1\n", "        return teacher(x)\n"])
def test_what_is_no_assignment_is_left(tmp_path, line):
    with pytest.raises(NotApplicable, match="no single assignment"):
        of_teacher(tmp_path, STEP.replace("        target = teacher(x)\n", line), 7)
