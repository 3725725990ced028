"""Raw rows to a Timeline: sorted, pairs matched, what is what told by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from unstall.trace.readers import names as naming
from unstall.trace.readers.rows import (
    BEGIN,
    BEYOND_64_BITS,
    COLUMNS,
    DEVICE_RANGE,
    END,
    MALFORMED,
    MISSING,
    NEGATIVE,
    NO_DEVICE,
    NO_OBJECT,
    TRUNCATED,
    UNENDED,
    UNKNOWN_PHASE,
    UNTIMED,
    EventScanner,
    Tables,
    Texts,
    decoded,
    has_known_phase,
    unescaped,
)
from unstall.trace.timeline import (
    NONE,
    Collective,
    DeviceKind,
    DeviceTable,
    HostKind,
    HostTable,
    RangeTable,
    Stretches,
    Thread,
    Timeline,
    WaitTable,
)

UNBALANCED = "ranges without a beginning or an end"
FAR_AWAY = "events more than a week from the others (left out)"
WEEK_NS = 7 * 86400 * 10**9
_OUTER_FIRST = {HostKind.STEP: 0, HostKind.PYTHON: 1, HostKind.LOADER: 1, HostKind.ANNOTATION: 2, HostKind.OPERATOR: 3}
"""Of two events that begin and end together, which is around the other; all else is inside."""

MAX_DEVICE = (1 << 31) - 1
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"-?[0-9]+")

Columns = dict[str, NDArray[Any]]
Item = TypeVar("Item", bound=Hashable)
Table = TypeVar("Table", bound=Stretches)
Lane = tuple["int | str", "int | str"]
"""(pid, tid); "" for a missing one."""


def assemble(scanner: EventScanner, path: str) -> Timeline:
    """All that a scanner has read as a Timeline, whose origin is the first event on the file's own clock."""
    problems = _problems(scanner)
    names, renumber = _distinct([*_decoded(scanner, Texts.NAMES), ""])
    lanes = [lane(text) for text in scanner.strings(Texts.LANES)]
    host, device, waits = (_columns(scanner, table) for table in (Tables.HOST, Tables.DEVICE, Tables.WAIT))
    for table in (host, device, waits):
        table["name"] = renumber[table["name"]]  # -1, of an event without a name, is the last: ""
    _clean_times([host, device, waits], problems)
    _match_pairs(host, problems)
    for table in (device, waits):
        _place(table, lanes)
    device["graph"] = device["graph"].astype(bool)
    collectives = [collective(text) for text in scanner.strings(Texts.COLLECTIVES)]
    threads = _threads(scanner, host, lanes)
    ranges = _take_ranges(device)
    timeline = finish(path, "kineto", names, threads, host, device, waits, problems, ranges)
    timeline.collectives = collectives
    timeline.stacks = _decoded(scanner, Texts.STACKS)
    timeline.input_texts = [text.decode("utf-8", "replace") for text in scanner.strings(Texts.INPUTS)]
    timeline.events = sum(scanner.counts().events)
    return timeline


def _problems(scanner: EventScanner) -> dict[str, int]:
    counts = scanner.counts()
    by_route = zip(scanner.strings(Texts.ROUTES), counts.events)
    counted = {
        MALFORMED: counts.malformed,
        NO_OBJECT: counts.no_object,
        BEYOND_64_BITS: counts.beyond,
        UNKNOWN_PHASE: sum(count for text, count in by_route if not has_known_phase(text)),
        TRUNCATED: int(counts.truncated),
    }
    return {what: count for what, count in counted.items() if count}


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
    _describe_copies(device, names)
    waits["kind"] = _by_name(names, naming.wait_kind)[waits.pop("name")]
    around = np.array([_OUTER_FIRST.get(kind, 4) for kind in HostKind], np.uint8)[host["kind"]]
    return Timeline(
        path=path,
        source=source,
        names=names,
        threads=threads,
        host=_table(HostTable, host, around),
        device=_table(DeviceTable, device),
        waits=_table(WaitTable, waits),
        ranges=_table(RangeTable, ranges) if ranges else RangeTable.empty(),
        origin_ns=origin,
        problems=problems,
    )


def _columns(scanner: EventScanner, table: Tables) -> Columns:
    return {
        column.name: np.frombuffer(scanner.take(number), column.dtype)
        for number, column in enumerate(COLUMNS)
        if column.table == table
    }


def _keep(table: Columns, rows: NDArray[np.bool_]) -> None:
    for name in table:
        table[name] = table[name][rows]


def _take_ranges(device: Columns) -> Columns:
    """The rows that are no work, which leave the others' table."""
    chosen = device["kind"] == DEVICE_RANGE
    ranges = {name: device[name][chosen] for name in ("start_ns", "dur_ns", "name", "device", "stream")}
    if chosen.any():
        _keep(device, ~chosen)
    return ranges


def _decoded(scanner: EventScanner, which: Texts) -> list[str]:
    return [unescaped(text) for text in scanner.strings(which)]


def _distinct(items: list[Item]) -> tuple[list[Item], NDArray[np.int32]]:
    """What was written differently may be the same; the second value translates old numbers to new."""
    numbers: dict[Item, int] = {}
    renumber = np.array([numbers.setdefault(item, len(numbers)) for item in items], np.int32)
    return list(numbers), renumber


# ---- time


def _clean_times(tables: list[Columns], problems: dict[str, int]) -> None:
    """Leave out rows without a time; durations that are missing or negative are 0."""
    counted = dict.fromkeys((UNTIMED, UNENDED, NEGATIVE), 0)
    for table in tables:
        untimed = table["start_ns"] == MISSING
        if untimed.any():
            counted[UNTIMED] += int(untimed.sum())
            _keep(table, ~untimed)
        negative = table["dur_ns"] < 0
        if negative.any():
            complete = table["kind"] < BEGIN if "kind" in table else np.ones(len(negative), bool)
            missing = table["dur_ns"] == MISSING
            counted[UNENDED] += int((missing & complete).sum())
            counted[NEGATIVE] += int((negative & ~missing & complete).sum())
            table["dur_ns"] = np.where(negative, 0, table["dur_ns"])
    problems.update((what, count) for what, count in counted.items() if count)


def _match_pairs(host: Columns, problems: dict[str, int]) -> None:
    """Give ranges that were recorded as two events (B, E) their duration. One that never ends lasts to the last event.

    As in Chrome's format an E ends the latest open B of its thread. The rows of ends leave the table.
    """
    is_end = (host["kind"] & END).astype(bool)
    halves = np.flatnonzero(host["kind"] >= BEGIN)
    if not len(halves):
        return
    halves = halves[np.argsort(host["start_ns"][halves], kind="stable")]
    durations = np.where(host["kind"] < BEGIN, host["dur_ns"], 0)
    open_rows: dict[int, list[int]] = {}
    unmatched = 0
    columns = host["start_ns"][halves], is_end[halves], host["lane"][halves], halves
    for time, ends, lane_number, row in zip(*(column.tolist() for column in columns)):
        if not ends:
            open_rows.setdefault(lane_number, []).append(row)
        elif open_rows.get(lane_number):
            begun = open_rows[lane_number].pop()
            durations[begun] = time - host["start_ns"][begun]
        else:
            unmatched += 1
    left = [row for rows in open_rows.values() for row in rows]
    if left:
        last = int(np.max(np.where(is_end, MISSING, host["start_ns"] + durations)))
        durations[left] = last - host["start_ns"][left]
    if left or unmatched:
        problems[UNBALANCED] = len(left) + unmatched
    host["dur_ns"] = durations
    host["kind"] = host["kind"] & ~np.uint8(BEGIN)
    _keep(host, ~is_end)


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
            _keep(table, ~far)
        if len(table["start_ns"]):
            first = int(table["start_ns"].min())
            origin = first if origin is None else min(origin, first)
    for table in tables:
        table["start_ns"] = table["start_ns"] - (origin or 0)
    return origin or 0


# ---- threads


def lane(text: bytes) -> Lane:
    """Of the JSON of a pid and a tid: numbers, those in strings included, else text, "" for neither."""
    pid, tid = (_lane_part(value) for value in decoded(text))
    return pid, tid


def _lane_part(value: Any) -> int | str:
    number = value
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        number = float(value) if len(value) > 18 or not _WHOLE.fullmatch(value) else int(value)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, int) and not isinstance(number, bool) and abs(number) < 1 << 63:
        return number
    return value if isinstance(value, str) else ""


def _place(table: Columns, lanes: list[Lane]) -> None:
    """Give rows their device and stream. Where args do not tell, those are pid and tid, "stream 7" in old traces."""
    devices = [pid if isinstance(pid, int) and abs(pid) <= MAX_DEVICE else NONE for pid, _ in lanes]
    streams = [tid if isinstance(tid, int) else _last_digits(tid) for _, tid in lanes]
    row_lanes = table.pop("lane")
    for column, absent, of_lane in (("device", NO_DEVICE, devices), ("stream", MISSING, streams)):
        values = table[column]
        by_lane = np.array(of_lane or [NONE], values.dtype)[row_lanes]
        table[column] = np.where(values == absent, by_lane, values)


def _last_digits(text: str) -> int:
    match = re.search(r"[0-9]{1,18}\Z", text)
    return int(match[0]) if match else NONE


def _threads(scanner: EventScanner, host: Columns, lanes: list[Lane]) -> list[Thread]:
    """The lanes that host events are on, with the names that the file gives them; numbers host["thread"] by them."""
    names, texts = _decoded(scanner, Texts.NAMES), _decoded(scanner, Texts.LABELS)
    labels = _columns(scanner, Tables.LABEL)
    thread_names: dict[Lane, str] = {}
    process_names: dict[int | str, str] = {}
    for what, number, text in zip(*(labels[column].tolist() for column in ("name", "lane", "text"))):
        if what < 0 or text < 0:
            continue
        if names[what] == "thread_name":
            thread_names[lanes[number]] = texts[text].strip()
        elif names[what] == "process_name":
            process_names[lanes[number][0]] = texts[text].strip()
    distinct, renumber = _distinct(lanes)
    lane_of_row = renumber[host.pop("lane")]
    used = np.flatnonzero(np.bincount(lane_of_row, minlength=len(distinct)))
    numbers = np.zeros(len(distinct), np.int32)
    numbers[used] = np.arange(len(used))
    host["thread"] = numbers[lane_of_row]
    threads = [distinct[number] for number in used.tolist()]
    return [_thread(thread, thread_names.get(thread, ""), process_names) for thread in threads]


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


def collective(text: bytes) -> Collective:
    """From the JSON of its name, group and group size."""
    name, group, size = decoded(text)
    return Collective(_text(name), _text(group), _count(size))


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _count(value: Any) -> int | None:
    text = _text(value)
    return int(text) if text.isdecimal() and len(text) < 20 else None


# ---- tables


def _describe_copies(device: Columns, names: list[str]) -> None:
    copies = device["kind"] == DeviceKind.MEMCPY
    device["copy"] = np.where(copies, _by_name(names, naming.copy_kind)[device["name"]], np.uint8(0))
    device["memory"] = np.where(device["copy"] > 0, _by_name(names, naming.host_memory)[device["name"]], np.uint8(0))


def _table(kind: type[Table], columns: Columns, inner: NDArray[np.uint8] | None = None) -> Table:
    """Rows by start; of equal ones the longer first, then the outer by kind, then as in the file."""
    keys = (-columns["dur_ns"], columns["start_ns"])
    order = np.lexsort(keys if inner is None else (inner, *keys))
    return kind(**{name: columns.pop(name)[order] for name in list(columns)})
