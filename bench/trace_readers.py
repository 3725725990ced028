"""One way to read a trace, for bench/trace.py to time in a process of its own: python trace_readers.py WAY FILE.

Nothing here is needed by more than one way, so each imports what it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable


def unstall_load(path: str) -> None:
    """The timeline: every event sorted, linked and in columns."""
    from unstall.trace.readers import read

    for timeline in read(path):
        assert len(timeline.launch) == len(timeline.device)
        assert len(timeline.parent) == len(timeline.host)


def unstall_trace(path: str) -> None:
    """The whole answer, as `unstall trace` gives it."""
    from unstall.cli.main import main

    sys.argv = ["unstall", "trace", path]
    main()


def hta_load(path: str) -> None:
    """HolisticTraceAnalysis: a data frame."""
    _quiet_hta(path)


def hta(path: str) -> None:
    """HolisticTraceAnalysis: its temporal, kernel and idle-time breakdowns."""
    analysis = _quiet_hta(path)
    analysis.get_temporal_breakdown(visualize=False)
    analysis.get_gpu_kernel_breakdown(visualize=False)
    analysis.get_idle_time_breakdown(ranks=[0], visualize=False)


def _quiet_hta(path: str):
    import logging
    import warnings

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    from hta.trace_analysis import TraceAnalysis

    return TraceAnalysis(trace_files={0: path})


def streamed(path: str) -> None:
    """Igzip and msgspec in chunks, to typed structs that are dropped at once: about the least that Python can do.

    It leans on Kineto's line layout to find where events end, which a reader of real files must not.
    """
    import msgspec
    from isal import igzip

    text_or_number = (int | str, 0)
    args = msgspec.defstruct("Args", [("correlation", int, -1)])
    event = msgspec.defstruct(
        "Event",
        [("ph", str), ("name", str, ""), ("cat", str, ""), ("ts", float, 0.0), ("dur", float, 0.0)]
        + [("pid", *text_or_number), ("tid", *text_or_number), ("args", args | None, None)],
    )
    decode = msgspec.json.Decoder(list[event]).decode
    with igzip.open(path, "rb") as file:
        data = b""
        while chunk := file.read(4 << 20):
            data += chunk
            begin = data.find(b"[", data.find(b'"traceEvents"')) + 1 if b'"traceEvents"' in data else 0
            end = data.rfind(b"\n  },")
            if end > begin:
                decode(b"[" + data[begin : end + 4] + b"]")
                data = data[end + 5 :]


def unpacked(path: str) -> None:
    """Igzip alone."""
    from isal import igzip

    with igzip.open(path, "rb") as file:
        while file.read(4 << 20):
            pass


def nothing(path: str) -> None:
    """An interpreter that starts and ends."""


WAYS: dict[str, Callable[[str], None]] = {
    "unstall-load": unstall_load,
    "unstall-trace": unstall_trace,
    "hta-load": hta_load,
    "hta": hta,
    "streamed": streamed,
    "igzip": unpacked,
    "nothing": nothing,
}

if __name__ == "__main__":
    WAYS[sys.argv[1]](sys.argv[2])
