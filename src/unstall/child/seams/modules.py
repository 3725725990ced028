"""torch.nn: each outermost ``Module.__call__`` on a thread is one forward.

Wrapped before torch.compile's tracer takes its own reference to ``Module.__call__``, so that compiled programs are
traced exactly as without unstall.
"""

from __future__ import annotations

from typing import Any

from unstall.child.recording import FORWARD, seam_ready, wrap_attribute


def _install(module: Any) -> None:
    seam_ready()
    wrap_attribute(
        module.Module,
        "__call__",
        "~forward",
        kind=FORWARD,
        group=0,
        grad=module.torch._C.is_grad_enabled,
    )


TARGETS = {"torch.nn.modules.module": _install}
