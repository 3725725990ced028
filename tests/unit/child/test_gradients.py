"""Gradients that are computed for nothing: told apart by whose parameters an optimizer works on."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unstall.child import gradients


def trained(model, *optimized):
    """The facts of a model after a backward through all of it, for optimizers of these parts."""
    model(torch.ones(2, 4)).sum().backward()
    return gradients.facts(model, [torch.optim.SGD(part.parameters(), lr=0.1) for part in optimized])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 8))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.backbone(x))


def test_a_part_that_no_optimizer_updates_is_named():
    model = Classifier()
    assert trained(model, model.head) == {"gradients": 40 + 72 + 18, "updated": 18, "idle": ["backbone"]}


def test_optimizers_of_all_parts_together_leave_nothing():
    model = Classifier()
    assert trained(model, model.head, model.backbone) == {"gradients": 130, "updated": 130, "idle": []}


def test_what_is_frozen_has_no_gradients():
    model = Classifier()
    model.backbone.requires_grad_(False)
    assert trained(model, model.head) == {"gradients": 18, "updated": 18, "idle": []}


def test_the_parts_of_a_wrapped_model_are_looked_at():
    class Wrapper(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def forward(self, x):
            return self.module(x)

    model = Classifier()
    assert trained(Wrapper(model), model.head)["idle"] == ["module.backbone"]


@pytest.mark.parametrize("model", [nn.Linear(4, 2), nn.Sequential(nn.Linear(4, 2))])
def test_nothing_is_said_where_the_optimizer_works_on_copies(model):
    assert trained(model, nn.Linear(4, 2)) == {}


def test_a_layer_alone_is_no_part():
    layer = nn.Linear(4, 2)
    layer(torch.ones(2, 4)).sum().backward()
    assert gradients.facts(layer, [torch.optim.SGD([layer.bias], lr=0.1)]) == {
        "gradients": 10,
        "updated": 2,
        "idle": [],
    }
