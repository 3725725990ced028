"""Which parts of a model learn, and which stay as they are."""

from __future__ import annotations

import copy

import pytest

from unstall.child import frozen

torch = pytest.importorskip("torch")
nn = torch.nn


class Classifier(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone, self.head = backbone, nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.backbone(x))


def backbone(*more):
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), *more).eval().requires_grad_(False)


def named(model, between=lambda: None):
    """The states by the names of the modules, after a step of the head's and what is done between the looks."""
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    earlier = frozen.versions([model])
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    between()
    found = frozen.states([model], [optimizer], earlier)
    return {name: found[id(module)] for name, module in model.named_modules() if id(module) in found}


def test_a_backbone_stays_and_a_head_learns():
    assert named(Classifier(backbone())) == {"backbone": "frozen", "backbone.0": "frozen", "head": "learns"}


def test_gradients_without_an_optimizer_teach_nothing():
    assert named(Classifier(backbone().requires_grad_(True)))["backbone"] == "frozen"


@pytest.mark.parametrize("layer", [nn.Dropout(0.1), nn.BatchNorm1d(8)])
def test_what_differs_from_call_to_call_is_not_frozen(layer):
    training = backbone(layer)
    training.train()
    assert named(Classifier(training)).get("backbone") is None
    assert named(Classifier(training.eval()))["backbone"] == "frozen"


def test_weights_that_are_written_to_are_not_frozen():
    model = Classifier(backbone())

    def average():
        with torch.no_grad():
            model.backbone[0].weight.mul_(0.99)

    assert named(model, average) == {"head": "learns"}


def test_a_copy_of_what_learns_may_be_renewed_later():
    model = Classifier(nn.Sequential(nn.Linear(4, 8), nn.ReLU()))
    target = copy.deepcopy(model).requires_grad_(False)
    earlier = frozen.versions([model, target])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = frozen.states([model, target], [optimizer], earlier)
    assert id(target) not in found and id(target.head) not in found


def test_where_nothing_learns_nothing_is_told():
    model = Classifier(backbone())
    assert frozen.states([model], [], frozen.versions([model])) == {}


def test_a_module_that_holds_itself_is_looked_at_once():
    model = Classifier(backbone())
    model.head.add_module("owner", model)
    optimizer = torch.optim.SGD(list(model.head.parameters(recurse=False)), lr=0.1)
    assert frozen.states([model], [optimizer], frozen.versions([model]))[id(model.head)] == "learns"
