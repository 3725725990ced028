"""A trace as data frames, for notebooks: ``unstall.trace.load("trace.json.gz").device``.

Columns have names and kinds spelled out, where the timeline has numbers; times are nanoseconds since the start of the
trace. Frames are polars' where that is installed, else pandas'.
"""

from __future__ import annotations

from dataclasses import fields
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unstall.trace.readers import read
from unstall.trace.timeline import (
    CopyKind,
    DeviceKind,
    HostKind,
    HostMemory,
    Ids,
    Stretches,
    Timeline,
    TraceError,
    WaitKind,
)


def load(path: str | Path, process: int = 0) -> Frames:
    """A trace file as frames.

    Args:
        path: anything that ``unstall trace`` reads.
        process: which one, of a file that holds several processes (an Nsight report of a multi-GPU job).

    Raises:
        TraceError: if there is nothing in the file that can be read.
    """
    timelines = read(path)
    if not 0 <= process < len(timelines):
        raise TraceError(f"{path}: no process {process}, it holds {len(timelines)}")
    return Frames(timelines[process])


class Frames:
    """The tables of a timeline as frames, made when they are asked for."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline

    def __repr__(self) -> str:
        t = self.timeline
        return f"<trace {t.path}: {len(t.host)} host events, {len(t.device)} device events, {len(t.steps)} steps>"

    @cached_property
    def host(self) -> Any:
        """Events of host threads, with the row of the event around each in ``parent`` (-1: none)."""
        threads = [thread.name or f"thread {thread.tid}" for thread in self.timeline.threads]
        words = {"kind": _members(HostKind), "name": self.timeline.names, "thread": threads}
        return _frame_of(self.timeline.host, words, parent=self.timeline.parent)

    @cached_property
    def device(self) -> Any:
        """Kernels, copies, memsets and collectives, with the host row that launched each in ``launch`` (-1: none)."""
        words = {"kind": _members(DeviceKind), "copy": _members(CopyKind), "memory": _members(HostMemory)}
        words["name"] = self.timeline.names
        return _frame_of(self.timeline.device, words, launch=self.timeline.launch)

    @cached_property
    def waits(self) -> Any:
        """Recorded synchronisation; often empty."""
        return _frame_of(self.timeline.waits, {"kind": _members(WaitKind)})

    @cached_property
    def steps(self) -> Any:
        """The iterations."""
        return _frame_of(self.timeline.steps, {})


_INDICES = ("inputs", "stack", "collective", "row")
"""Columns that only point into other lists of the timeline."""


def _members(kinds: type[IntEnum]) -> list[str]:
    return [kind.name.lower() for kind in kinds]


def _frame_of(table: Stretches, words: dict[str, list[str]], **more: Ids) -> Any:
    """A table's columns, those in ``words`` spelled out, and ``more``."""
    columns = {field.name: getattr(table, field.name) for field in fields(table) if field.name not in _INDICES}
    columns |= {name: Words(spelled, columns[name]) for name, spelled in words.items()}
    return frame(columns | more)


class Words:
    """A column of few distinct words: their numbers, and the words."""

    def __init__(self, words: list[str], numbers: Ids | NDArray[np.uint8]) -> None:
        self.words = words
        self.numbers = numbers


def frame(columns: dict[str, Any]) -> Any:
    """A polars frame, or without polars a pandas one; words become categories, not a string a row."""
    try:
        import polars
    except ImportError:
        return _pandas_frame(columns)
    values = {}
    for name, column in columns.items():
        if isinstance(column, Words):
            used, numbers = np.unique(column.numbers, return_inverse=True)
            words = polars.Series([column.words[n] for n in used.tolist()], dtype=polars.String)
            values[name] = words.gather(numbers).cast(polars.Categorical) if len(numbers) else words
        else:
            values[name] = polars.Series(column)
    return polars.DataFrame(values)


def _pandas_frame(columns: dict[str, Any]) -> Any:
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError("unstall.trace.load needs polars or pandas: pip install polars") from None
    values = {}
    for name, column in columns.items():
        if isinstance(column, Words):
            used, numbers = np.unique(column.numbers, return_inverse=True)
            values[name] = pandas.Categorical.from_codes(numbers, [column.words[n] for n in used.tolist()])
        else:
            values[name] = column
    return pandas.DataFrame(values)
