"""A model that became double by accident, and the batches that it is given."""

from __future__ import annotations

import pytest
from optimize_builders import make_module

from unstall.optimize.remedies.single_precision import in_single
from unstall.optimize.source.errors import NotApplicable
from unstall.records.measurements import SeamSite

DOUBLE = """import torch


def train(model, loader):
    model = model.double()
    for x, y in loader:
        model(x)
"""


SITE = SeamSite("~forward", "train.py", "train", 7)


def test_a_double_model_becomes_single_with_its_batches():
    text = in_single(make_module(DOUBLE), SITE).code
    assert "model = model.float()" in text and "double" not in text
    batch = "        x, y = (value.float() if value.is_floating_point() else value for value in (x, y))\n"
    assert f"    for x, y in loader:\n{batch}        model(x)\n" in text


@pytest.mark.parametrize(
    ("old", "new", "written"),
    [
        ("import torch", "import torch as th\nth.set_default_dtype(th.float64)", "th.set_default_dtype(th.float32)"),
        ("model.double()", "model.to(torch.double)", "model = model.float()"),
        ("model.double()", "build(3).double()", "model = build(3).float()"),
    ],
)
def test_other_ways_to_make_it_double(old, new, written):
    assert (
        written
        in in_single(
            make_module(DOUBLE.replace(old, new)),
            SeamSite("~forward", "train.py", "train", 7 + (old == "import torch")),
        ).code
    )


@pytest.mark.parametrize(("old", "new"), [("model.double()", "model"), ("for x, y in", "for x.a, y in")])
def test_what_cannot_be_converted_is_left(old, new):
    with pytest.raises(NotApplicable):
        in_single(make_module(DOUBLE.replace(old, new)), SITE)
