"""torch.autograd: ``Tensor.backward``, ``autograd.backward`` and ``autograd.grad`` all enter the engine here."""

from __future__ import annotations

import struct
from types import FunctionType
from typing import TYPE_CHECKING, Any

from unstall.child import finding, reading
from unstall.child.recording import wrap_attribute
from unstall.records import vocabulary
from unstall.records.vocabulary import Seam, Tick

if TYPE_CHECKING:
    from unstall.child.seams import Listener

BACKWARD = Seam(
    "~backward",
    phase=vocabulary.BACKWARD.name,
    counts=Tick.BACKWARD,
    stub="backward",
    frames=((r"torch[/\\]autograd[/\\](__init__|graph)\.py$", r"backward|grad|_engine_run_backward"),),
)


def _install(module: Any) -> None:
    # Inside the public functions, which torch.compile knows by identity; second argument position: the outputs first.
    wrap_attribute(module, "_engine_run_backward", BACKWARD)


def _find() -> list[FunctionType]:
    """What ``Tensor.backward`` and ``autograd.backward`` come down to in Python."""
    return finding.members("torch.autograd", "_engine_run_backward")


_LAYOUTS = {"torch.float64": "=d", "torch.float32": "=f", "torch.float16": "=e", "torch.bfloat16": "=f"}
"""As ``struct`` calls them. The two bytes of bfloat16 are the upper half of those of float32."""


def _note(listener: Listener, count: int, outputs: Any, _: Any) -> None:
    if _is_nan(outputs):
        listener.emit_fact_once("nan", call=count)


def _is_nan(outputs: Any) -> bool:
    """Whether the value that backward starts from, a single number on the CPU, is not a number."""
    loss: Any = outputs[0] if type(outputs) in (tuple, list) and outputs else None
    known = reading.memory(loss, _LAYOUTS, 1)
    if known is None:
        return False
    dtype, read = known
    layout = _LAYOUTS[dtype]
    (value,) = struct.unpack(layout, bytes(struct.calcsize(layout) - len(read)) + read)
    return bool(value != value)


SEAMS = (BACKWARD,)
TARGETS = {"torch.autograd": _install}
FINDERS = {BACKWARD.stub: _find}
NOTES = {BACKWARD.event: _note}
