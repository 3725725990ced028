"""Gradients are switched off only where nothing asks for them."""

from __future__ import annotations

import pytest
from optimize_builders import make_module

from unstall.optimize.remedies.base import NotApplicable
from unstall.optimize.remedies.no_grad import with_gradients_off, with_no_grad

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
