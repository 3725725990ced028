"""torch.optim: ``Optimizer.step`` through the official hooks common to all optimizers."""

from __future__ import annotations

import sys
from typing import Any

from unstall.child.recording import OPTIMIZER, native

_handles: list[Any] = []


def _install(module: Any) -> None:
    if "torch._dynamo" in sys.modules:
        _register_traceable(module)
    else:
        _register(module, *native.hooks("~optimizer", OPTIMIZER))


def _on_dynamo(_: Any) -> None:
    """What is written in C cannot be traced, and torch.compile may trace a step from here on."""
    module = sys.modules.get("torch.optim.optimizer")
    if module is None or not _handles:
        return
    while _handles:
        _handles.pop().remove()
    _register_traceable(module)


def _register_traceable(module: Any) -> None:
    """Hooks that step aside while a step is traced."""
    before, after = native.hooks("~optimizer", OPTIMIZER)
    is_compiling = sys.modules["torch"].compiler.is_compiling

    def traceable_before(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not is_compiling():
            before(optimizer)

    def traceable_after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not is_compiling():
            after(optimizer)

    _register(module, traceable_before, traceable_after)


def _register(module: Any, before: Any, after: Any) -> None:
    _handles.append(module.register_optimizer_step_pre_hook(before))
    _handles.append(module.register_optimizer_step_post_hook(after))


TARGETS = {"torch.optim.optimizer": _install, "torch._dynamo": _on_dynamo}
