"""torch.autograd: ``Tensor.backward``, ``autograd.backward`` and ``autograd.grad`` all enter the engine here."""

from __future__ import annotations

from typing import Any

from unstall.child.recording import BACKWARD, wrap_attribute


def _install(module: Any) -> None:
    # Inside the public functions, which torch.compile knows by identity; second argument position: the outputs first.
    wrap_attribute(module, "_engine_run_backward", "~backward", kind=BACKWARD)


TARGETS = {"torch.autograd": _install}
