"""Raw rows to a Timeline: sorted, pairs matched, what is what told by name."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unstall.trace.readers import names as naming
from unstall.trace.readers.rows import COLUMNS, COUNTS, DEVICE_RANGE, EventScanner, Tables, Texts
from unstall.trace.timeline import (
    NONE,
    Collective,
    DeviceKind,
    DeviceTable,
    HostKind,
    HostTable,
    RangeTable,
    Thread,
    Timeline,
    WaitTable,
)

UNBALANCED = "ranges without a beginning or an end"
FAR_AWAY = "events more than a week from the others (left out)"
WEEK_NS = 7 * 86400 * 10**9
_OUTER_FIRST = {HostKind.STEP: 0, HostKind.PYTHON: 1, HostKind.LOADER: 1, HostKind.ANNOTATION: 2, HostKind.OPERATOR: 3}
"""Of two events that begin and end together, which is around the other; all else is inside."""

Columns = dict[str, NDArray[Any]]
Lane = tuple["int | str", "int | str"]
"""(pid, tid); "" for a missing one."""


def assemble(scanner: EventScanner, path: str) -> Timeline:
    """All that a scanner has read as a Timeline, whose origin is the first event on the file's own clock."""
    problems = {what: n for what, n in zip(COUNTS[1:], scanner.counts()[1:]) if n}
    names, renumber = _distinct(_decoded(scanner, Texts.NAMES))
    host, device, waits = (_columns(scanner, table) for table in (Tables.HOST, Tables.DEVICE, Tables.WAIT))
    for table in (host, device, waits):
        table["name"] = renumber[table["name"]]
    _match_pairs(host, _columns(scanner, Tables.END), problems)
    threads = _threads(scanner, host, _lanes(scanner))
    ranges = _take_ranges(device)
    timeline = finish(path, "kineto", names, threads, host, device, waits, problems, ranges)
    timeline.collectives = [collective(text) for text in _decoded(scanner, Texts.COLLECTIVES)]
    timeline.stacks = _decoded(scanner, Texts.STACKS)
    timeline.input_texts = _decoded(scanner, Texts.INPUTS)
    timeline.events = scanner.counts()[0]
    return timeline


def finish(
    path: str,
    source: str,
    names: list[str],
    threads: list[Thread],
    host: Columns,
    device: Columns,
    waits: Columns,
    problems: dict[str, int],
    ranges: Columns | None = None,
) -> Timeline:
    """A Timeline from the columns of its tables, which are used up, so that no two copies are kept."""
    tables = [host, device, waits, *([ranges] if ranges else [])]
    origin = _leave_out_strays(tables, problems)
    _refine(host, device, names)
    return Timeline(
        path=path,
        source=source,
        names=names,
        threads=threads,
        host=_host_table(host),
        device=_device_table(device, names),
        waits=_wait_table(waits, names),
        ranges=_range_table(ranges) if ranges else RangeTable.empty(),
        origin_ns=origin,
        problems=problems,
    )


def _columns(scanner: EventScanner, table: Tables) -> Columns:
    return {
        name: np.frombuffer(scanner.take(table, number), dtype)
        for number, (name, dtype) in enumerate(COLUMNS[table].items())
    }


def _take_ranges(device: Columns) -> Columns:
    """The rows that are no work, which leave the others' table."""
    chosen = device["kind"] == DEVICE_RANGE
    ranges = {name: device[name][chosen] for name in ("start_ns", "dur_ns", "name", "device", "stream")}
    if chosen.any():
        for name in device:
            device[name] = device[name][~chosen]
    return ranges


def _decoded(scanner: EventScanner, which: Texts) -> list[str]:
    return [text.decode("utf-8", "replace") for text in scanner.strings(which)]


def _distinct(names: list[str]) -> tuple[list[str], NDArray[np.int32]]:
    """Names that were different bytes may be one text; the second value translates old numbers to new."""
    numbers: dict[str, int] = {}
    renumber = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int32)
    return list(numbers), renumber


# ---- time


def _match_pairs(host: Columns, ends: Columns, problems: dict[str, int]) -> None:
    """Give ranges that were recorded as two events (B, E) their duration. One that never ends lasts to the last event.

    As in Chrome's format an E ends the latest open B of its thread.
    """
    begun = np.flatnonzero(host["dur_ns"] == NONE)
    if not len(begun) and not len(ends["time_ns"]):
        return
    durations = host["dur_ns"].copy()
    open_rows: dict[int, list[int]] = {}
    unmatched = 0
    for time, _, lane, row in _pair_events(host, begun, ends):
        if row >= 0:
            open_rows.setdefault(lane, []).append(row)
        elif open_rows.get(lane):
            row = open_rows[lane].pop()
            durations[row] = time - host["start_ns"][row]
        else:
            unmatched += 1
    left = [row for rows in open_rows.values() for row in rows]
    if left:
        last = int(np.max(host["start_ns"] + np.maximum(durations, 0)))
        durations[left] = last - host["start_ns"][left]
    if left or unmatched:
        problems[UNBALANCED] = len(left) + unmatched
    host["dur_ns"] = durations


def _pair_events(host: Columns, begun: NDArray[np.intp], ends: Columns) -> list[tuple[int, float, int, int]]:
    """(time, place in the file, lane, host row or -1 for an end), in order of time, then of the file."""
    begins = zip(host["start_ns"][begun].tolist(), begun.tolist(), host["lane"][begun].tolist(), begun.tolist())
    finishes = zip(ends["time_ns"].tolist(), ends["before"].tolist(), ends["lane"].tolist())
    events = [(time, float(place), lane, row) for time, place, lane, row in begins]
    events += [(time, place - 0.5, lane, NONE) for time, place, lane in finishes]
    return sorted(events, key=lambda event: event[:2])


def _leave_out_strays(tables: list[Columns], problems: dict[str, int]) -> int:
    """Make times count from the first event, and return when that was.

    A corrupt time far from all others (zero, say) would make every share of the whole meaningless: it is left out.
    """
    starts = [table["start_ns"] for table in tables if len(table["start_ns"])]
    if not starts:
        return 0
    middle = int(np.median(np.concatenate([start[:: max(1, len(start) // 10_000)] for start in starts])))
    origin: int | None = None
    for table in tables:
        far = (np.abs(table["start_ns"] - middle) > WEEK_NS) | (table["dur_ns"] > WEEK_NS)
        if far.any():
            problems[FAR_AWAY] = problems.get(FAR_AWAY, 0) + int(far.sum())
            for name in table:
                table[name] = table[name][~far]
        if len(table["start_ns"]):
            first = int(table["start_ns"].min())
            origin = first if origin is None else min(origin, first)
    for table in tables:
        table["start_ns"] = table["start_ns"] - (origin or 0)
    return origin or 0


# ---- threads


def _lanes(scanner: EventScanner) -> list[Lane]:
    texts = _decoded(scanner, Texts.TEXTS)
    lanes = []
    for key in scanner.strings(Texts.LANES):
        pid_kind, pid, tid_kind, tid = struct.unpack("<cqcq", key)
        lanes.append((_lane_part(pid_kind, pid, texts), _lane_part(tid_kind, tid, texts)))
    return lanes


def _lane_part(kind: bytes, value: int, texts: list[str]) -> int | str:
    if kind == b"t":
        return texts[value]
    return value if kind == b"i" else ""


def _threads(scanner: EventScanner, host: Columns, lanes: list[Lane]) -> list[Thread]:
    """The lanes that host events are on, with the names that the file gives them; numbers host["thread"] by them."""
    texts = _decoded(scanner, Texts.TEXTS)
    labels = _columns(scanner, Tables.LABEL)
    thread_names: dict[int, str] = {}
    process_names: dict[int | str, str] = {}
    for what, lane, text in zip(labels["what"].tolist(), labels["lane"].tolist(), labels["text"].tolist()):
        if texts[what] == "thread_name":
            thread_names[lane] = texts[text].strip()
        elif texts[what] == "process_name":
            process_names[lanes[lane][0]] = texts[text].strip()
    lane_of_row = host.pop("lane")
    used = np.flatnonzero(np.bincount(lane_of_row, minlength=len(lanes)))
    numbers = np.zeros(len(lanes), np.int32)
    numbers[used] = np.arange(len(used))
    host["thread"] = numbers[lane_of_row]
    return [_thread(lanes[lane], thread_names.get(lane, ""), process_names) for lane in used.tolist()]


def _thread(lane: Lane, name: str, processes: dict[int | str, str]) -> Thread:
    pid, tid = lane
    return Thread(
        pid=pid if isinstance(pid, int) else NONE,
        tid=tid if isinstance(tid, int) else NONE,
        name=name or (tid if isinstance(tid, str) else ""),
        process=processes.get(pid, "") or (pid if isinstance(pid, str) else ""),
    )


# ---- kinds


def _by_name(names: list[str], decide: Callable[[str], int]) -> NDArray[np.uint8]:
    return np.fromiter((decide(name) for name in names), np.uint8, len(names))


def _refine(host: Columns, device: Columns, names: list[str]) -> None:
    """Put right by name what the category does not tell."""
    kinds = host["kind"].copy()
    for kind in (HostKind.OPERATOR, HostKind.ANNOTATION):
        better = _by_name(names, lambda name, kind=kind: naming.host_kind(name, kind))  # type: ignore[misc]
        kinds = np.where(kinds == kind, better[host["name"]], kinds)
    host["kind"] = kinds
    kernel = device["kind"] == DeviceKind.KERNEL
    copy = _by_name(names, naming.is_copy)[device["name"]].astype(bool)
    collective = _by_name(names, naming.is_collective)[device["name"]].astype(bool) | (device["collective"] >= 0)
    device["kind"] = np.select(
        [kernel & copy, kernel & collective], [DeviceKind.MEMCPY, DeviceKind.COLLECTIVE], device["kind"]
    ).astype(np.uint8)
    for table in (host, device):
        for column in ("correlation", "external"):
            table[column] = np.where(table[column] > 0, table[column], NONE)
    _mark_graphs(host, device, names)


def _mark_graphs(host: Columns, device: Columns, names: list[str]) -> None:
    launching = _by_name(names, naming.is_graph_launch)[host["name"]].astype(bool)
    launched = np.isin(device["correlation"], host["correlation"][launching & (host["correlation"] > 0)])
    device["graph"] = device["graph"].astype(bool) | launched


def collective(text: str) -> Collective:
    """From the six metrics as the scanner joins them."""
    name, group, size, dtype, inputs, outputs = (text.split("\x1f") + [""] * 6)[:6]
    return Collective(name, group, _count(size), dtype, _count(inputs), _count(outputs))


def _count(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 20 else None


# ---- tables


def _host_table(host: Columns) -> HostTable:
    ranks = np.array([_OUTER_FIRST.get(kind, 4) for kind in HostKind], np.uint8)
    order = _order(host, ranks[host["kind"]])
    return HostTable(**{name: host.pop(name)[order] for name in list(host)})


def _device_table(device: Columns, names: list[str]) -> DeviceTable:
    order = _order(device)
    device["copy"] = np.where(
        device["kind"] == DeviceKind.MEMCPY, _by_name(names, naming.copy_kind)[device["name"]], np.uint8(0)
    )
    device["memory"] = np.where(device["copy"] > 0, _by_name(names, naming.host_memory)[device["name"]], np.uint8(0))
    return DeviceTable(**{name: device.pop(name)[order] for name in list(device)})


def _range_table(ranges: Columns) -> RangeTable:
    order = _order(ranges)
    return RangeTable(**{name: ranges.pop(name)[order] for name in list(ranges)})


def _wait_table(waits: Columns, names: list[str]) -> WaitTable:
    order = _order(waits)
    waits["kind"] = _by_name(names, naming.wait_kind)[waits.pop("name")]
    return WaitTable(**{name: waits.pop(name)[order] for name in list(waits)})


def _order(table: Columns, inner: NDArray[np.uint8] | None = None) -> NDArray[np.intp]:
    """By start; of equal ones the longer first, then the outer by kind, then as in the file."""
    keys = (-table["dur_ns"], table["start_ns"]) if inner is None else (inner, -table["dur_ns"], table["start_ns"])
    return np.lexsort(keys)
