"""torch.compile: the time in which it compiles a graph, and what it says of each function that it compiled.

Both come from torch itself: its callbacks around compilations, and the metrics that it keeps of the last 64 of them,
which name the guard that failed where a function was compiled again, and what broke its graph.
"""

from __future__ import annotations

import atexit
import re
import sys
from typing import Any

from unstall.child import handlers, recording
from unstall.child.recording import native, seam_ready
from unstall.records import vocabulary
from unstall.records.vocabulary import Seam

GRAPH = Seam("~dynamo.compile", phase=vocabulary.COMPILE.name)

RESUMED = re.compile(r"^torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d+)$")
"""The function that torch makes of what comes after a break, by its name."""

_UTILITIES = "torch._dynamo.utils"
_NO_REASON = "<class "
"""So begins the reason of an analysis that starts again for itself."""
_LONGEST = 300

_last: Any = None
"""The metrics that were told last."""


def _install(module: Any) -> None:
    seam_ready()
    number = native.intern(GRAPH.event)

    def began(args: Any) -> None:
        native.begin(number)

    def ended(args: Any) -> None:
        native.end(number)
        _tell_compiled()

    module.callback_handler.register_start_callback(began)
    module.callback_handler.register_end_callback(ended)
    atexit.register(_tell_compiled)


def _tell_compiled() -> None:
    """A line of facts for each compilation that torch has kept the metrics of since the last time."""
    global _last
    try:
        if recording.emit_fact is None:
            return
        recorded = sys.modules[_UTILITIES].get_compilation_metrics()
        new = []
        for metrics in reversed(recorded):
            if metrics is _last:
                break
            new.append(metrics)
        for metrics in reversed(new):
            _last = metrics
            facts = _facts(metrics)
            if facts is not None:
                recording.emit_fact("compiled", **facts)
    except Exception as error:  # other versions of torch keep other metrics
        if handlers.raised(error):
            raise


def _facts(metrics: Any) -> dict[str, Any] | None:
    """None for what says nothing of a function: the compilation of its backward pass."""
    frame, failure = str(metrics.compile_id or "").partition("/")[0], metrics.fail_reason
    if not frame or not (metrics.co_name or failure):
        return None
    return {
        "frame": frame,
        "function": metrics.co_name or "",
        "file": metrics.co_filename or "",
        "line": metrics.co_firstlineno or 0,
        "reason": _short(metrics.recompile_reason),
        "breaks": [_short(text) for text in sorted(metrics.restart_reasons or ()) if not text.startswith(_NO_REASON)],
        "failure": _short(failure),
    }


def _short(text: str | None) -> str:
    return (text or "").strip()[:_LONGEST]


SEAMS = (GRAPH,)
TARGETS = {"torch._dynamo.callback": _install}
