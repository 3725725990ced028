"""The raw rows that a scanner fills from JSON: which columns there are, and what a category means.

Both scanners, ``_scan`` (C) and :mod:`unstall.trace.readers.events` (Python), keep to this. Numbers of tables, columns
and counts are those of ``native/scan.h``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

import numpy as np

from unstall.trace.timeline import DeviceKind, HostKind


class Tables(IntEnum):
    """The tables of rows."""

    HOST = 0
    DEVICE = 1
    WAIT = 2
    END = 3
    """The second half of a begin/end pair."""
    LABEL = 4
    """What thread_name and its kin say of a lane."""


class Texts(IntEnum):
    """The tables of interned strings."""

    NAMES = 0
    STACKS = 1
    INPUTS = 2
    COLLECTIVES = 3
    LANES = 4
    """(pid, tid), each a letter and an int64: ``i`` the number, ``t`` a number in TEXTS, a space for neither."""
    TEXTS = 5
    CATEGORIES = 6


COLUMNS: dict[Tables, dict[str, type[np.generic]]] = {
    Tables.HOST: {
        "start_ns": np.int64,
        "dur_ns": np.int64,  # -1: begins here, ended by a row of END
        "name": np.int32,
        "lane": np.int32,
        "kind": np.uint8,
        "correlation": np.int64,
        "external": np.int64,
        "sequence": np.int64,
        "inputs": np.int32,
        "stack": np.int32,
        "collective": np.int32,
    },
    Tables.DEVICE: {
        "start_ns": np.int64,
        "dur_ns": np.int64,
        "name": np.int32,
        "device": np.int32,
        "stream": np.int64,
        "kind": np.uint8,
        "correlation": np.int64,
        "external": np.int64,
        "bytes": np.int64,
        "graph": np.uint8,
        "collective": np.int32,
    },
    Tables.WAIT: {
        "start_ns": np.int64,
        "dur_ns": np.int64,
        "name": np.int32,
        "device": np.int32,
        "stream": np.int64,
        "correlation": np.int64,
        "on_stream": np.int64,
        "on_correlation": np.int64,
    },
    Tables.END: {"time_ns": np.int64, "lane": np.int32, "before": np.int64},
    Tables.LABEL: {"what": np.int32, "lane": np.int32, "text": np.int32},
}

COUNTS = (
    "events",
    "events that are not valid JSON",
    "entries without an event",
    "events without a time",
    "negative durations (read as 0)",
    "events without a duration (read as 0)",
    "integers beyond 64 bits",
    "events of an unknown phase",
    "trace cut off in the middle (a killed job?), read up to there",
)
UNTIMED, TRUNCATED = COUNTS[3], COUNTS[-1]

DEVICE_ROW, WAIT_ROW, SKIPPED_ROW, UNKNOWN_ROW = 0x10, 0x20, 0x30, 0xFF
DEVICE_RANGE = 0x0F
"""Kind of a row among those of the device that is no work, but a range that the profiler shows there."""

_HOST_CATEGORIES = {
    HostKind.OPERATOR: ("cpu_op", "operator", "hpu_op"),
    HostKind.RUNTIME: ("cuda_runtime", "runtime", "hip_runtime", "xpu_runtime", "mtia_runtime", "privateuse1_runtime"),
    HostKind.DRIVER: ("cuda_driver", "driver", "xpu_driver", "privateuse1_driver"),
    HostKind.ANNOTATION: ("user_annotation",),
    HostKind.PYTHON: ("python_function",),
    HostKind.OVERHEAD: ("overhead",),
}
_DEVICE_CATEGORIES = {
    DeviceKind.KERNEL: ("kernel", "concurrent_kernel"),
    DeviceKind.MEMCPY: ("gpu_memcpy", "memcpy"),
    DeviceKind.MEMSET: ("gpu_memset", "memset"),
}
_SKIPPED_CATEGORIES = (
    "trace",  # the recording itself
    "cuda_profiler_range",
    "external_correlation",
)
CATEGORIES: list[tuple[str, int]] = [
    *((name, int(kind)) for kind, names in _HOST_CATEGORIES.items() for name in names),
    *((name, DEVICE_ROW | kind) for kind, names in _DEVICE_CATEGORIES.items() for name in names),
    ("gpu_user_annotation", DEVICE_ROW | DEVICE_RANGE),
    ("cuda_sync", WAIT_ROW),
    *((name, SKIPPED_ROW) for name in _SKIPPED_CATEGORIES),
]
"""What the ``cat`` of an event, in lower case, makes of it: table in the high half, kind in the low half."""


class EventScanner(Protocol):
    """Reads the elements of an array of trace events, in pieces, into rows."""

    def feed(self, data: bytes, final: bool = False) -> bytes | None:
        """Read on. None while the array goes on, the bytes behind it when it has ended; final: no more will come."""
        ...

    def take(self, table: int, column: int) -> bytes:
        """Hand over a column as bytes of its type; it is empty afterwards, and nothing can be fed any more."""
        ...

    def strings(self, which: int) -> list[bytes]:
        """Interned strings by number, UTF-8 with whatever the file has in it."""
        ...

    def counts(self) -> list[int]:
        """As named in COUNTS."""
        ...
