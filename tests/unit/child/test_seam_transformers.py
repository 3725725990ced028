"""The seam of Transformers' generate(), installed into a stand-in for the library."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from unstall.child.seams import transformers
from unstall.child.tap import Tap
from unstall.records.vocabulary import Tick

torch = pytest.importorskip("torch")


def library(prepared):
    """``prepared``: what each call of the model is given."""

    class GenerationMixin:
        def generate(self, inputs, depth=1):
            if depth > 1:
                return self.generate(inputs, depth - 1)
            for number in range(2):
                self.prepare_inputs_for_generation(inputs, number)
            return torch.cat([inputs, inputs[:, :2]], dim=1)

        def prepare_inputs_for_generation(self, inputs, number):
            return prepared(inputs, number)

    return SimpleNamespace(GenerationMixin=GenerationMixin, __name__="transformers.generation.utils")


def install(module):
    transformers.TARGETS["transformers.generation.utils"](module)
    return module.GenerationMixin()


def arguments(recorded):
    return [int(argument) for argument in recorded.spans()["arg"]]


def test_a_request_is_recorded_once_with_what_the_model_is_given(recorded):
    model = install(library(lambda inputs, number: {"input_ids": inputs[:, -1:] if number else inputs}))
    result = model.generate(torch.zeros(3, 5), depth=2)
    assert tuple(result.shape) == (3, 7)
    assert recorded.names() == ["~generate.inputs", "~generate.inputs", "~generate"]
    assert arguments(recorded) == [3 << 32 | 5, 3 << 32 | 1, 3]
    assert Tap(recorded.path).ticks[Tick.REQUEST] == 1


@pytest.mark.parametrize(
    "prepared",
    [None, {}, {"input_ids": None}, {"input_ids": "text"}, {"inputs_embeds": torch.zeros(4)}],
    ids=["none", "empty", "no-ids", "text", "flat"],
)
def test_what_cannot_be_read_is_recorded_all_the_same(recorded, prepared):
    model = install(library(lambda inputs, number: prepared))
    model.generate(torch.zeros(1, 5))
    assert arguments(recorded) == [0, 0, 1]


def test_embeddings_and_a_decoders_inputs_have_a_length_too(recorded):
    given = [{"input_ids": None, "inputs_embeds": torch.zeros(1, 9, 4)}, {"decoder_input_ids": torch.zeros(1, 2)}]
    install(library(lambda inputs, number: given[number])).generate(torch.zeros(1, 5))
    assert arguments(recorded)[:2] == [1 << 32 | 9, 1 << 32 | 2]


def test_a_version_without_the_method_is_an_error_that_becomes_a_note(recorded):
    module = library(lambda inputs, number: {})
    del module.GenerationMixin.prepare_inputs_for_generation
    with pytest.raises(AttributeError, match="prepare_inputs_for_generation"):
        transformers.TARGETS["transformers.generation.utils"](module)
