"""Reading GPU traces that somebody already recorded, and saying what they show.

In a notebook::

    import unstall.trace

    trace = unstall.trace.load("trace.json.gz")
    trace.device                 # a polars frame of kernels and copies; trace.host, trace.steps, trace.waits
    trace.device.to_pandas()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unstall.trace.timeline import Timeline, TraceError

if TYPE_CHECKING:
    from unstall.trace.frames import Frames, load

__all__ = ["Frames", "Timeline", "TraceError", "load"]


def __getattr__(name: str) -> Any:
    """Frames need a data-frame library, which reading a trace does not."""
    if name in ("Frames", "load"):
        from unstall.trace import frames

        return getattr(frames, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
