"""torch.compile: the time in which it compiles a graph, through its own official callbacks."""

from __future__ import annotations

from typing import Any

from unstall.child.recording import native, seam_ready
from unstall.records import vocabulary
from unstall.records.vocabulary import Seam

GRAPH = Seam("~dynamo.compile", phase=vocabulary.COMPILE.name)


def _install(module: Any) -> None:
    seam_ready()
    number = native.intern(GRAPH.event)
    module.callback_handler.register_start_callback(lambda args: native.begin(number))
    module.callback_handler.register_end_callback(lambda args: native.end(number))


SEAMS = (GRAPH,)
TARGETS = {"torch._dynamo.callback": _install}
