"""Who is inside whom, and who launched what: the two relations between the rows of a timeline."""

from __future__ import annotations

from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from unstall.trace.library import address, library
from unstall.trace.timeline import NONE, DeviceTable, HostKind, HostTable, Ids, Ints

Integer = TypeVar("Integer", bound=np.integer[Any])

SLACK_NS = 1000
"""Traces in whole microseconds round a child's end past its parent's by up to one."""
DEPTH = 1000
"""How many open events are looked at: beyond that they do not nest but overlap."""


def parents(start_ns: Ints, dur_ns: Ints, thread: Ids) -> Ids:
    """For each event the innermost one around it on its thread, as an index, or -1.

    Args:
        start_ns: starts, ascending; where equal, the outer event first.
        dur_ns: durations, not negative.
        thread: thread of each event.
    """
    functions = library()
    if functions is None:
        return _parents(start_ns, dur_ns, thread)
    count, threads = len(thread), int(thread.max(initial=-1)) + 1
    if thread.min(initial=0) < 0:
        raise ValueError("threads are numbered from 0")
    start_ns, dur_ns, thread = map(np.ascontiguousarray, (start_ns, dur_ns, thread))
    result = np.empty(count, np.int32)
    times = address(start_ns, np.int64, count), address(dur_ns, np.int64, count)
    lanes, parent = address(thread, np.int32, count), address(result, np.int32, count)
    if not functions.nest(count, *times, lanes, threads, SLACK_NS, DEPTH, parent):
        raise MemoryError
    return result


def _parents(start_ns: Ints, dur_ns: Ints, thread: Ids) -> Ids:
    """The same in Python, where there was no C compiler."""
    result = np.full(len(start_ns), NONE, np.int32)
    open_by_thread: dict[int, list[tuple[int, int]]] = {}
    rows = zip(start_ns.tolist(), (start_ns + dur_ns).tolist(), thread.tolist())
    for row, (start, end, lane) in enumerate(rows):
        stack = open_by_thread.setdefault(lane, [])
        while stack and stack[-1][0] <= start:
            stack.pop()
        for other_end, other in islice(reversed(stack), DEPTH):
            if end <= other_end + SLACK_NS:
                result[row] = other
                break
        stack.append((end, row))
    return result


def launches(host: HostTable, device: DeviceTable) -> Ids:
    """For each device row the host row that started it, or -1.

    That is the API call of the same correlation id; where the file has none, the operator of the same external id.
    """
    calls = np.flatnonzero((host.kind == HostKind.RUNTIME) | (host.kind == HostKind.DRIVER))
    result = _match(host.correlation, calls, device.correlation)
    if (result == NONE).any():
        operators = np.flatnonzero((host.kind == HostKind.OPERATOR) | (host.kind == HostKind.ANNOTATION))
        result = np.where(result == NONE, _match(host.external, operators, device.external), result)
    return result


def pick(column: NDArray[Integer], rows: Ids | Ints) -> NDArray[Integer]:
    """``column[rows]``, and -1 where a row is -1: the column may be empty."""
    result = np.full(len(rows), NONE, column.dtype)
    known = rows >= 0
    result[known] = column[rows[known]]
    return result


def _match(ids: Ints, rows: NDArray[np.intp], wanted: Ints) -> Ids:
    """For each wanted id, the first of the rows that has it, or -1."""
    rows = rows[ids[rows] >= 0]
    result = np.full(len(wanted), NONE, np.int32)
    if not len(rows):
        return result
    order = np.argsort(ids[rows], kind="stable")
    rows = rows[order]
    keys = ids[rows]
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    known = (keys[at] == wanted) & (wanted >= 0)
    result[known] = rows[at[known]]
    return result
