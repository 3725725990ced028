"""Transformers: the events of the Trainer's callbacks, and each call of ``generate()`` with the model's in it."""

from __future__ import annotations

from typing import Any

from unstall.child import families, handlers, reading
from unstall.child.recording import seam_ready, wrap_attribute
from unstall.records.vocabulary import Seam, SeamGroup, Tick

EVENTS = families.event_seam("~event.transformers.*")
REQUEST = Seam("~generate", counts=Tick.REQUEST, group=SeamGroup.REQUESTS)
"""Its argument: how many sequences came out, 0 where that is not known."""
INPUTS = Seam("~generate.inputs")
"""Before each call of the model. Its argument: what that is given, as ``sequences << 32 | tokens``."""

SEQUENCES_SHIFT = 32
_MIXIN = "GenerationMixin"
_KEYS = ("input_ids", "decoder_input_ids", "inputs_embeds")


def _install_callbacks(module: Any) -> None:
    families.record_events(
        module.TrainerCallback, EVENTS, lambda name: name.startswith("on_"), containers=("CallbackHandler",)
    )


def _install_generate(module: Any) -> None:
    seam_ready()
    mixin = getattr(module, _MIXIN)
    for attribute, seam, after in (
        ("generate", REQUEST, _generated),
        ("prepare_inputs_for_generation", INPUTS, _prepared),
    ):
        getattr(mixin, attribute)  # the error of a version without it becomes a note
        wrap_attribute(mixin, attribute, seam, after=after)


def _generated(result: Any, *args: Any, **kwargs: Any) -> int:
    shape = _shape_of(result)
    return (shape or _shape_of(reading.attributes(result).get("sequences")) or (0,))[0]


def _prepared(result: Any, *args: Any, **kwargs: Any) -> int:
    given = (dict.get(result, key) for key in _KEYS) if issubclass(type(result), dict) else ()
    shape = next(filter(None, map(_shape_of, given)), (0, 0))
    return shape[0] << SEQUENCES_SHIFT | shape[1]


def _shape_of(value: Any) -> tuple[int, ...] | None:
    """Of a tensor with two dimensions or more."""
    try:
        with reading.unobserved():
            shape = reading.shape(value)
        return tuple(map(int, shape)) if shape is not None and len(shape) > 1 else None
    except Exception as error:
        if handlers.raised(error):
            raise
        return None


SEAMS = (EVENTS, REQUEST, INPUTS)
TARGETS = {
    "transformers.trainer_callback": _install_callbacks,
    "transformers.generation.utils": _install_generate,
}
