"""Let one call of a model fail, as a full memory or a bad sample would: what the program then does is its own matter.

``plan["call"]``: after how many calls from outside of any model, of the main process. ``plan["interrupt"]``: as Ctrl-C
does.
"""

from __future__ import annotations

from typing import Any

from unstall.child import trial


class Fault(RuntimeError):
    """Raised in place of a model's result."""


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """A hook on the calls of models."""
    if trial.is_helper():
        return []
    left = int(plan["call"])

    def count(model: Any, args: tuple[Any, ...], result: Any) -> None:
        nonlocal left
        if not trial.is_unseen():
            left -= 1
            if not left and plan.get("interrupt"):
                raise KeyboardInterrupt
            if not left:
                raise Fault("a fault that was put in here, to see how the program ends")

    return [("torch.nn.modules.module", lambda module: trial.after_model_calls(module, count))]
