"""The raw rows that a scanner fills from JSON: which columns there are, which field of an event each comes from, and
which events go where.

The scanners, :mod:`unstall.trace.readers.native` (C) and :mod:`unstall.trace.readers.events` (Python), read what
stands here. The first fields, the first text and the numbers in How are those of ``native/scan.h``.
"""

from __future__ import annotations

import json
import re
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import numpy as np

from unstall.trace.timeline import NONE, DeviceKind, HostKind


class Tables(IntEnum):
    """The tables of rows."""

    HOST = 0
    DEVICE = 1
    WAIT = 2
    LABEL = 3
    """What thread_name and its kin say of a lane."""


class Texts(IntEnum):
    """The tables of interned strings."""

    ROUTES = 0
    """JSON of (phase, category): events of the same two go the same way, see route()."""
    NAMES = 1
    """These, STACKS and LABELS are strings of JSON without their quotes, see unescaped()."""
    STACKS = 2
    INPUTS = 3
    """JSON of (dims, types, concrete inputs of a convolution)."""
    COLLECTIVES = 4
    """JSON of (name, group, group size)."""
    LANES = 5
    """JSON of (pid, tid)."""
    LABELS = 6


class How(IntEnum):
    """How a column is filled."""

    KIND = 0
    """Filled with what the route says."""
    INTEGER = 1
    """Filled with a number, or a string that is one, times 10^scale."""
    POSITIVE = 2
    """Filled with whether there is a number above 0."""
    TEXT = 3
    """Filled with the number of an interned string; -1 for an empty one and for all that is no string."""
    LIST = 4
    """Filled with the number of the JSON of a list of fields, null where one is absent."""
    OPTIONAL_LIST = 5
    """The same, but -1 where the first is absent."""
    INPUTS = 6
    """The same, and the last only of operators with "conv" in their name."""


class ColumnSpec(NamedTuple):
    """A column of a table, and what it is filled with."""

    table: Tables
    name: str
    dtype: type[np.generic]
    how: How
    fields: tuple[str, ...] = ()
    """Where the value stands in an event, as in FIELDS."""
    texts: Texts = Texts.ROUTES
    scale: int = 0
    absent: int = NONE
    """The value of an integer that is not there."""


MISSING, NO_DEVICE = -(1 << 63), -(1 << 31)
"""A time, duration or stream that is not there, and a device."""
BEGIN, END = 0x40, 0x80
"""Flags of a host row's kind: a range begins here (its end is an event of its own), or one ends here."""


def _kind(table: Tables) -> ColumnSpec:
    return ColumnSpec(table, "kind", np.uint8, How.KIND)


def _times(table: Tables) -> list[ColumnSpec]:
    """Kineto writes times in microseconds, with three decimals since 2024; here they are nanoseconds."""
    return [
        ColumnSpec(table, name, np.int64, How.INTEGER, (field,), scale=3, absent=MISSING)
        for name, field in (("start_ns", "ts"), ("dur_ns", "dur"))
    ]


def _integers(table: Tables, **fields: str) -> list[ColumnSpec]:
    return [ColumnSpec(table, name, np.int64, How.INTEGER, (f"args.{field}",)) for name, field in fields.items()]


def _place(table: Tables) -> list[ColumnSpec]:
    """Device and stream as the args tell; where they do not, the lane does."""
    return [
        ColumnSpec(table, "device", np.int32, How.INTEGER, ("args.device",), absent=NO_DEVICE),
        ColumnSpec(table, "stream", np.int64, How.INTEGER, ("args.stream",), absent=MISSING),
    ]


def _name(table: Tables) -> ColumnSpec:
    return ColumnSpec(table, "name", np.int32, How.TEXT, ("name",), Texts.NAMES)


def _lane(table: Tables) -> ColumnSpec:
    return ColumnSpec(table, "lane", np.int32, How.LIST, ("pid", "tid"), Texts.LANES)


_COLLECTIVE = ("args.Collective name", "args.Process Group Name", "args.Group size")
_INPUTS = ("args.Input Dims", "args.Input type", "args.Concrete Inputs")

COLUMNS: list[ColumnSpec] = [
    *_times(Tables.HOST),
    _name(Tables.HOST),
    _lane(Tables.HOST),
    _kind(Tables.HOST),
    *_integers(Tables.HOST, correlation="correlation", external="External id", sequence="Sequence number"),
    ColumnSpec(Tables.HOST, "inputs", np.int32, How.INPUTS, _INPUTS, Texts.INPUTS),
    ColumnSpec(Tables.HOST, "stack", np.int32, How.TEXT, ("args.Call stack",), Texts.STACKS),
    *_times(Tables.DEVICE),
    _name(Tables.DEVICE),
    _lane(Tables.DEVICE),
    _kind(Tables.DEVICE),
    *_place(Tables.DEVICE),
    *_integers(Tables.DEVICE, correlation="correlation", external="External id", bytes="bytes"),
    ColumnSpec(Tables.DEVICE, "graph", np.uint8, How.POSITIVE, ("args.graph node id",)),
    ColumnSpec(Tables.DEVICE, "collective", np.int32, How.OPTIONAL_LIST, _COLLECTIVE, Texts.COLLECTIVES),
    *_times(Tables.WAIT),
    _name(Tables.WAIT),
    _lane(Tables.WAIT),
    *_place(Tables.WAIT),
    *_integers(Tables.WAIT, correlation="correlation", on_stream="wait_on_stream"),
    *_integers(Tables.WAIT, on_correlation="wait_on_cuda_event_record_corr_id"),
    _name(Tables.LABEL),
    _lane(Tables.LABEL),
    ColumnSpec(Tables.LABEL, "text", np.int32, How.TEXT, ("args.name",), Texts.LABELS),
]
"""All columns, table by table."""

FIELDS: dict[str, int] = {
    field: number
    for number, field in enumerate(
        dict.fromkeys(
            [
                *("args", "ph", "cat", "name", "args.device", "args.stream"),  # these numbers are known to the scanners
                *(field for column in COLUMNS for field in column.fields),
            ]
        )
    )
}
"""The fields of an event that are read, by number; ``args.`` stands before those of its args."""

SAME_FIELDS = {"args.external id": "args.External id", "args.labels": "args.name"}
"""Fields with two names."""

# ---- which events go where

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
DEVICE_RANGE = 0x0F
"""Kind of a row among those of the device that is no work, but a range that the profiler shows there."""
CATEGORIES: dict[str, tuple[Tables | None, int]] = {
    **{name: (Tables.HOST, int(kind)) for kind, names in _HOST_CATEGORIES.items() for name in names},
    **{name: (Tables.DEVICE, int(kind)) for kind, names in _DEVICE_CATEGORIES.items() for name in names},
    "gpu_user_annotation": (Tables.DEVICE, DEVICE_RANGE),
    "cuda_sync": (Tables.WAIT, 0),
    **dict.fromkeys(_SKIPPED_CATEGORIES, (None, 0)),
}
"""What the ``cat`` of an event, in lower case, makes of it: its table (None: left out) and its kind."""


class Route(NamedTuple):
    """Where events of a phase and category go. -1 for a table: they are left out."""

    table: int
    with_stream: int
    """The table of those whose args name a device and a stream."""
    kind: int


def route(text: bytes) -> Route:
    """The route of a text of Texts.ROUTES."""
    phase, category = decoded(text)
    name = category.lower() if isinstance(category, str) else ""
    table, kind = CATEGORIES.get(name, (Tables.HOST, int(HostKind.OTHER)))
    if phase == "E":
        return Route(Tables.HOST, Tables.HOST, END)
    if phase == "M":
        return Route(Tables.LABEL, Tables.LABEL, 0)
    if phase not in ("X", "B") or table is None:
        return Route(NONE, NONE, 0)
    if phase == "B":
        return Route(Tables.HOST, Tables.HOST, BEGIN | (kind if table == Tables.HOST else HostKind.OTHER))
    return Route(table, table if name in CATEGORIES else Tables.DEVICE, kind)


def has_known_phase(text: bytes) -> bool:
    """Whether the phase in a text of Texts.ROUTES is one of Chrome's format; most kinds of events are not read here."""
    phase = decoded(text)[0]
    return isinstance(phase, str) and len(phase) == 1 and phase in "XBEMiIsftRcCbenNODPv(),="


def unescaped(text: bytes) -> str:
    """A string of JSON, with or without escapes; what is no UTF-8 or a lone surrogate becomes U+FFFD."""
    written = text.decode("utf-8", "replace")
    return _SURROGATE.sub("\ufffd", DECODER.decode(f'"{written}"')) if "\\" in written else written


def decoded(text: bytes) -> list[Any]:
    """The list in a text of JSON that a scanner put together."""
    result: list[Any] = DECODER.decode(text.decode("utf-8", "replace"))
    return result


_SURROGATE = re.compile("[\ud800-\udfff]")
DECODER = json.JSONDecoder(parse_int=lambda text: int(text) if len(text) < 40 else float(text), strict=False)

# ---- what scanners tell

MALFORMED = "events that are not valid JSON"
NO_OBJECT = "entries without an event"
UNTIMED = "events without a time"
NEGATIVE = "negative durations (read as 0)"
UNENDED = "events without a duration (read as 0)"
BEYOND_64_BITS = "integers beyond 64 bits"
UNKNOWN_PHASE = "events of an unknown phase"
TRUNCATED = "trace cut off in the middle (a killed job?), read up to there"


class Counts(NamedTuple):
    """What a scanner counted."""

    malformed: int
    """Events that are no JSON."""
    no_object: int
    """Elements that are no event."""
    beyond: int
    """Integers that do not fit into 64 bits."""
    truncated: bool
    """Whether the data ended before the array did."""
    events: list[int]
    """How many there were of each of Texts.ROUTES."""


class EventScanner(Protocol):
    """Reads the elements of an array of trace events, in pieces, into rows."""

    def feed(self, data: bytes, final: bool = False) -> bytes | None:
        """Read on. None while the array goes on, the bytes behind it when it has ended; final: no more will come.

        Raises:
            ValueError: the array has ended.
        """
        ...

    def take(self, column: int) -> bytes:
        """Hand over one of COLUMNS as bytes of its type; it is empty afterwards, and nothing can be fed any more."""
        ...

    def strings(self, which: Texts) -> list[bytes]:
        """Interned strings by number, as JSON has them, UTF-8 with whatever the file has in it."""
        ...

    def counts(self) -> Counts:
        """What was read, and what could not be."""
        ...
