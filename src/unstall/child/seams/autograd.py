"""torch.autograd: ``Tensor.backward``, ``autograd.backward`` and ``autograd.grad`` all enter the engine here."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from unstall.child import finding
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


def _note(listener: Listener, count: int, outputs: Any, _: Any) -> None:
    if _is_nan(outputs):
        listener.tell_once("nan", call=count)


def _is_nan(outputs: Any) -> bool:
    """Whether the value that backward starts from, a single number on the CPU, is not a number."""
    try:
        loss = outputs[0].detach()
        return bool(loss.numel() == 1 and loss.device.type == "cpu" and loss.item() != loss.item())
    except (TypeError, IndexError, AttributeError, RuntimeError):
        return False


SEAMS = (BACKWARD,)
TARGETS = {"torch.autograd": _install}
FINDERS = {BACKWARD.stub: _find}
NOTES = {BACKWARD.event: _note}
