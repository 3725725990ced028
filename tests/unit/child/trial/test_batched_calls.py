"""A model that is called for many items at once is proved to give what it gives for each."""

from __future__ import annotations

import builtins

import libcst as cst
import pytest

from unstall.child.trial import batched_calls, check
from unstall.optimize.source.toplevel import with_runtime

torch = pytest.importorskip("torch")
SIZE = 128.0


@pytest.fixture
def checked(monkeypatch):
    """The patch's class as the check has it, and what it complains of."""
    told = []
    monkeypatch.setattr(builtins, "__build_class__", builtins.__build_class__)
    check.watch_classes({"_Batches": lambda cls: batched_calls.check_class(cls, told.append, SIZE)})
    text = with_runtime(cst.parse_module(""), "batches").code
    space: dict = {}
    exec(text, space)
    return space["_Batches"], told


def each(items):
    for item in items:
        yield item, (item[None],)


def test_a_model_that_treats_items_alone_passes(checked):
    cls, told = checked
    items = list(torch.arange(12.0).reshape(6, 2))
    out = [(kept, output) for kept, output in cls(lambda x: x * 2, 64).each(items, each)]
    assert not told and all(torch.equal(output, kept[None] * 2) for kept, output in out) and len(out) == 6


def test_a_model_that_mixes_items_does_not(checked):
    cls, told = checked
    list(cls(lambda x: x - x.mean(), 64).each(list(torch.arange(12.0).reshape(6, 2)), each))
    assert told and "many items" in told[0]


def test_an_input_that_depends_on_the_items_before_does_not(checked):
    cls, told = checked
    offset = torch.zeros(1)

    def shifting(items):
        for item in items:
            yield None, (item[None] + offset,)

    for _ in cls(lambda x: x, 64).each(list(torch.arange(12.0).reshape(6, 2)), shifting):
        offset += 1
    assert told and "before" in told[0]


@pytest.mark.parametrize("stacked", [True, False])
@pytest.mark.parametrize("grad", [True, False])
def test_an_output_of_any_form_is_taken_apart(stacked, grad):
    from unstall.optimize.runtime.batches import _Batches

    weight = torch.tensor(2.0, requires_grad=grad)

    def call(x):
        return {"logits": x * weight, "more": (x.numpy() + 1, [x - 1])}

    inputs = [(torch.arange(3.0) + one if stacked else torch.arange(3.0).repeat(rows, 1) + one,)
              for one, rows in enumerate((1, 2, 1))]  # fmt: skip
    for (x,), output in zip(inputs, _Batches(call, 64, stacked=stacked).outputs(inputs)):
        expected = call(x)
        assert list(output) == ["logits", "more"] and isinstance(output["more"], tuple)
        assert torch.equal(output["logits"], expected["logits"])
        assert (output["more"][0] == expected["more"][0]).all() and output["more"][0].shape == x.shape
        assert torch.equal(output["more"][1][0], x - 1)
        output["logits"] += 1  # of a program that trains nothing but keeps gradients, too


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (torch.ones(3), torch.ones(3) * 1.000003, True),
        (torch.ones(3), torch.ones(3) * 1.0001, False),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), False),
        (torch.ones(3), torch.ones(3, 1), False),
        ({"a": (1, torch.ones(2))}, {"a": (1, torch.ones(2))}, True),
        ([1], (1,), False),
        ("x", "x", True),
        (torch.zeros(0), torch.zeros(0), True),
    ],
)
def test_what_is_alike(one, other, same):
    assert batched_calls.alike(one, other, size=SIZE) is same


def test_what_rounding_moves_far_may_differ_as_far():
    one, other, perturbed = torch.zeros(3), torch.full((3,), 1e-3), [torch.full((3,), 1e-4), torch.zeros(3)]
    assert batched_calls.alike([one], [other], [[tensor] for tensor in perturbed], SIZE)
    assert not batched_calls.alike([one], [other * 100], [[tensor] for tensor in perturbed], SIZE)


def test_a_model_that_is_perturbed_is_as_it_was_afterwards(checked):
    cls, told = checked
    model = torch.nn.Linear(2, 2)
    before = model.weight.clone()
    list(cls(model, 64).each(list(torch.randn(6, 2)), each))
    assert not told and torch.equal(model.weight, before)
