"""A timeline in formats that other tools read; one small module a format."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from unstall.trace.timeline import Timeline

KINDS = {
    "perfetto": "Perfetto's own format, for ui.perfetto.dev (.pftrace)",
    "chrome": "Chrome's JSON format, for chrome://tracing and Perfetto (.json, .json.gz)",
    "csv": "one row an event (.csv)",
    "parquet": "one row an event (.parquet), needs polars",
}


def export(timeline: Timeline, kind: str, path: str | Path) -> None:
    """Write a timeline to a file.

    Args:
        timeline: what to write.
        kind: one of KINDS.
        path: the file, which is replaced if it exists.

    Raises:
        ValueError: if the kind is unknown.
        ImportError: if a library is missing; the message says which.
        OSError: if the file cannot be written.
    """
    if kind not in KINDS:
        raise ValueError(f"no export format {kind!r}; there are {', '.join(KINDS)}")
    write: Callable[[Timeline, Path], None] = import_module(f"unstall.trace.export.{kind}").write
    write(timeline, Path(path))
