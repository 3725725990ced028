"""torch.optim: ``Optimizer.step`` through the official hooks common to all optimizers."""

from __future__ import annotations

import sys
from typing import Any

from unstall.benchmark.recording import OPTIMIZER, native


def _install(module: Any) -> None:
    name = native.intern("~optimizer")
    begin, end, tick = native.begin, native.end, native.tick

    def compiling() -> bool:
        compiler = sys.modules.get("torch.compiler")
        return compiler is not None and compiler.is_compiling()

    def pre(optimizer: Any, args: Any, kwargs: Any) -> None:
        if compiling():
            return
        tick(OPTIMIZER, name, optimizer)
        begin(name)

    def post(optimizer: Any, args: Any, kwargs: Any) -> None:
        if compiling():
            return
        end(name, id(optimizer))

    module.register_optimizer_step_pre_hook(pre)
    module.register_optimizer_step_post_hook(post)


TARGETS = {"torch.optim.optimizer": _install}
