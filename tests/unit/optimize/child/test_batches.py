"""A model that is called for many items at once is proved to give what it gives for each."""

from __future__ import annotations

import builtins

import pytest

from unstall.optimize.child import batches
from unstall.optimize.remedies.batch_calls import definition

torch = pytest.importorskip("torch")
TOLERANCES = {"float32": 1e-3}


@pytest.fixture
def checked(monkeypatch):
    """The patch's class as the check has it, and what it complains of."""
    told = []
    monkeypatch.setattr(builtins, "__build_class__", builtins.__build_class__)
    batches.watch(told.append, TOLERANCES)
    space = {"torch": torch, "itertools": __import__("itertools")}
    exec(definition(None, whole=False), space)
    return space["_Batches"], told


def each(items):
    for item in items:
        yield item, (item[None],)


def test_a_model_that_treats_items_alone_passes(checked):
    cls, told = checked
    items = list(torch.arange(12.0).reshape(6, 2))
    out = [(kept, output) for kept, output in cls.each(items, each, lambda x: x * 2, 64)]
    assert not told and all(torch.equal(output, kept[None] * 2) for kept, output in out) and len(out) == 6


def test_a_model_that_mixes_items_does_not(checked):
    cls, told = checked
    list(cls.each(list(torch.arange(12.0).reshape(6, 2)), each, lambda x: x - x.mean(), 64))
    assert told and "many items" in told[0]


def test_an_input_that_depends_on_the_items_before_does_not(checked):
    cls, told = checked
    offset = torch.zeros(1)

    def shifting(items):
        for item in items:
            yield None, (item[None] + offset,)

    for _ in cls.each(list(torch.arange(12.0).reshape(6, 2)), shifting, lambda x: x, 64):
        offset += 1
    assert told and "before" in told[0]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (torch.ones(3), torch.ones(3) * 1.0001, True),
        (torch.ones(3), torch.ones(3) * 1.1, False),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), False),
        (torch.ones(3), torch.ones(3, 1), False),
        ({"a": (1, torch.ones(2))}, {"a": (1, torch.ones(2))}, True),
        ([1], (1,), False),
        ("x", "x", True),
        (torch.zeros(0), torch.zeros(0), True),
    ],
)
def test_what_is_alike(one, other, same):
    assert batches.alike(one, other, TOLERANCES) is same
