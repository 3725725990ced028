"""Perfetto's protobuf format, for ui.perfetto.dev: smaller than JSON, and exact to the nanosecond.

The few messages that are needed are written by hand, with the field numbers of perfetto's
protos/perfetto/trace/{trace_packet,track_event/track_event,track_event/track_descriptor,interned_data}.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unstall.exports.exporter import Exporter
from unstall.trace.timeline import Timeline

SEQUENCE = 1
STATE_CLEARED, NEEDS_STATE = 1, 2
BEGIN, END = 1, 2
BUILTIN_BOOTTIME = 6
"""The clock that Perfetto draws times of."""
PROCESS_TRACK, THREAD_TRACK, DEVICE_TRACK, STREAM_TRACK = (sort << 32 for sort in (1, 2, 3, 4))
"""Where the ids of tracks of each sort begin."""


class Perfetto(Exporter):
    """One track a thread and a stream, with an arrow from each launch to what it started."""

    name = "perfetto"
    help = "Write the events of a GPU trace for ui.perfetto.dev (.pftrace)."
    metavar = "FILE"
    takes = ("timeline",)

    def export(self, source: Timeline, target: str, flags: frozenset[str] = frozenset()) -> None:
        with Path(target).open("wb") as file:
            file.write(_packet(12, _names(source), flags=STATE_CLEARED))  # first: what needs state is dropped before it
            for message in _tracks(source):
                file.write(_packet(60, message))
            for track, rows, table, flow in _slices(source):
                file.writelines(_events(source, track, rows, table, flow))


EXPORTER = Perfetto()


# ---- protobuf


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value & (1 << 64) - 1)


def _block(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _text(field: int, text: str) -> bytes:
    return _block(field, text.encode("utf-8", "replace"))


def _packet(field: int, message: bytes, time: int | None = None, flags: int = NEEDS_STATE) -> bytes:
    stamp = b"" if time is None else _number(8, time) + _number(58, BUILTIN_BOOTTIME)
    return _block(1, stamp + _number(10, SEQUENCE) + _number(13, flags) + _block(field, message))


# ---- what is in it


def _names(timeline: Timeline) -> bytes:
    return b"".join(_block(2, _number(1, number) + _text(2, name)) for number, name in enumerate(timeline.names, 1))


def _tracks(timeline: Timeline) -> Iterator[bytes]:
    processes = {max(thread.pid, 0): thread.process for thread in timeline.threads}
    for pid, process in processes.items():
        yield _number(1, PROCESS_TRACK + pid) + _block(3, _number(1, pid) + _text(6, process))
    for number, thread in enumerate(timeline.threads):
        pid, tid = max(thread.pid, 0), max(thread.tid, 0)
        metrics = _number(1, pid) + _number(2, tid) + _text(5, thread.name or f"thread {thread.tid}")
        yield _number(1, THREAD_TRACK + number) + _block(4, metrics)
    names = {device.id: device.name for device in timeline.devices}
    for number in np.unique(timeline.device.device).tolist():
        yield _number(1, _device_track(number)) + _text(2, f"GPU {number} {names.get(number, '')}".strip())
    for track, (device, stream) in enumerate(_streams(timeline)):
        name = _text(2, f"stream {stream}")
        yield _number(1, STREAM_TRACK + track) + name + _number(5, _device_track(device))


def _device_track(device: int) -> int:
    return DEVICE_TRACK + device + 1  # a device that is not known is -1


def _streams(timeline: Timeline) -> list[tuple[int, int]]:
    pairs = np.stack([timeline.device.device.astype(np.int64), timeline.device.stream], axis=1)
    return [(device, stream) for device, stream in np.unique(pairs, axis=0).tolist()]


def _slices(timeline: Timeline) -> Iterator[tuple[int, NDArray[np.intp], Any, NDArray[np.int64]]]:
    """(track, rows, table, flow of each row or -1) for each thread and stream."""
    host, device = timeline.host, timeline.device
    outgoing = np.full(len(host), -1, np.int64)
    launched = np.flatnonzero(timeline.launch >= 0)
    outgoing[timeline.launch[launched]] = timeline.launch[launched]
    for number in range(len(timeline.threads)):
        yield THREAD_TRACK + number, np.flatnonzero(host.thread == number), host, outgoing
    for track, (number, stream) in enumerate(_streams(timeline)):
        rows = np.flatnonzero((device.device == number) & (device.stream == stream))
        yield STREAM_TRACK + track, rows, device, timeline.launch.astype(np.int64)


def _events(
    timeline: Timeline, track: int, rows: NDArray[np.intp], table: Any, flow: NDArray[np.int64]
) -> Iterator[bytes]:
    """Beginnings and ends in an order that nests: what lasts longer than what is around it is cut off there."""
    ends: list[int] = []
    track_id = _number(11, track)
    begin, end = _number(9, BEGIN) + track_id, _number(9, END) + track_id
    origin = timeline.origin_ns
    columns = (table.start_ns[rows], table.dur_ns[rows], table.name[rows], flow[rows])
    for start, duration, name, arrow in zip(*(column.tolist() for column in columns)):
        while ends and ends[-1] <= start:
            yield _packet(11, end, origin + ends.pop())
        arrows = b"" if arrow < 0 else _varint(47 << 3 | 1) + (arrow + 1).to_bytes(8, "little")
        yield _packet(11, begin + _number(10, name + 1) + arrows, origin + start)
        ends.append(min([start + duration, *ends[-1:]]))
    while ends:
        yield _packet(11, end, origin + ends.pop())
