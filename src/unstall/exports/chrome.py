"""Chrome's trace event format (JSON), which chrome://tracing and ui.perfetto.dev open.

GPU traces are written in Kineto's dialect, so that whatever reads torch.profiler's traces reads them too.
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import gzip
import json
import math
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from unstall.exports.exporter import Exporter, Spans
from unstall.exports.tables import rows
from unstall.trace.timeline import DeviceKind, HostKind, Timeline

HOST_CATEGORIES = {
    HostKind.OTHER: "other",
    HostKind.OPERATOR: "cpu_op",
    HostKind.RUNTIME: "cuda_runtime",
    HostKind.DRIVER: "cuda_driver",
    HostKind.ANNOTATION: "user_annotation",
    HostKind.STEP: "user_annotation",
    HostKind.PYTHON: "python_function",
    HostKind.LOADER: "user_annotation",
    HostKind.OVERHEAD: "overhead",
}
DEVICE_CATEGORIES = {
    DeviceKind.KERNEL: "kernel",
    DeviceKind.MEMCPY: "gpu_memcpy",
    DeviceKind.MEMSET: "gpu_memset",
    DeviceKind.COLLECTIVE: "kernel",
}
_GZIP_LEVEL = 4


class Chrome(Exporter):
    """Spans and events as complete events ("ph": "X"), with flows from launches to kernels."""

    name = "chrome"
    help = "Write the events of a GPU trace as Chrome JSON (.json, .json.gz)."
    metavar = "FILE"
    takes = ("timeline", "spans")

    def export(self, source: Timeline | Spans, target: str, flags: frozenset[str] = frozenset()) -> None:
        """Write the trace, gzipped if the name ends in ``.gz``; it appears whole or not at all."""
        if isinstance(source, Spans):
            _write(Path(target), {"displayTimeUnit": "ms"}, _span_events(source))
        else:
            parts = (_labels(source), _host(source), _device(source), _ranges(source), _flows(source))
            _write(Path(target), _kineto_head(source), chain.from_iterable(parts))


EXPORTER = Chrome()


def _write(path: Path, head: dict[str, Any], events: Iterable[str]) -> None:
    """Write the events one by one, never together in memory. What was in the file before stays if that fails."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with _open(partial, compress=path.suffix == ".gz") as file:
            file.write(json.dumps(head)[:-1] + ', "traceEvents": [')
            separator = "\n"
            for event in events:
                file.write(separator + event)
                separator = ",\n"
            file.write("\n]}\n")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _open(path: Path, *, compress: bool) -> IO[str]:
    if compress:
        return gzip.open(path, "wt", compresslevel=_GZIP_LEVEL, encoding="utf-8")
    return path.open("w", encoding="utf-8")


def _complete(name: str, category: str, lane: str, start_ns: int, duration_ns: int, args: str = "") -> str:
    """One event; ``name`` and ``lane`` are JSON already."""
    return (
        f'{{"ph":"X","cat":"{category}","name":{name},{lane},'
        f'"ts":{_microseconds(start_ns)},"dur":{_microseconds(duration_ns)}{args}}}'
    )


def _microseconds(nanoseconds: int) -> str:
    """Exact, with the digits that a float of a long uptime would lose."""
    sign = "-" if nanoseconds < 0 else ""
    micros, remainder = divmod(abs(nanoseconds), 1000)
    return f"{sign}{micros}.{remainder:03d}"


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    """A JSON string; lone surrogates, which no reader takes, become question marks."""
    return json.dumps(text.encode("utf-8", "replace").decode("utf-8"))


# ---- the spans of a recorded run


def _span_events(source: Spans) -> Iterator[str]:
    for order, (pid, name) in enumerate(source.processes.items()):
        yield _metadata("process_name", pid, pid, {"name": name})
        yield _metadata("process_sort_index", pid, pid, {"sort_index": order})
        yield _metadata("thread_name", pid, pid, {"name": "main thread"})
    for name, category, start_s, duration_s, pid, tid in source.spans:
        if math.isfinite(start_s) and math.isfinite(duration_s):
            # Both ends are rounded, not the duration: so an inner span never outlasts the one around it.
            start = round(start_s * 1e9)
            end = max(round((start_s + duration_s) * 1e9), start)
            yield _complete(_quoted(name), category, f'"pid":{pid},"tid":{tid}', start, end - start)


def _metadata(event: str, pid: int | str, tid: int | str, args: dict[str, Any]) -> str:
    return json.dumps({"ph": "M", "name": event, "pid": pid, "tid": tid, "args": args})


# ---- a GPU trace


def _kineto_head(timeline: Timeline) -> dict[str, Any]:
    head: dict[str, Any] = {"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": timeline.origin_ns}
    head["deviceProperties"] = [
        {"id": device.id, "name": device.name, "totalGlobalMem": device.memory_bytes, "numSms": device.multiprocessors}
        for device in timeline.devices
    ]
    if timeline.rank is not None:
        head["distributedInfo"] = {"rank": timeline.rank, "world_size": timeline.world_size}
    return head


def _lane(timeline: Timeline, number: int) -> tuple[int | str, int | str]:
    thread = timeline.threads[number]
    return (thread.pid if thread.pid >= 0 else thread.process), (thread.tid if thread.tid >= 0 else thread.name)


def _lanes(timeline: Timeline) -> list[str]:
    """Process and thread of each of the host's threads, as JSON."""
    lanes = (_lane(timeline, number) for number in range(len(timeline.threads)))
    return [f'"pid":{json.dumps(pid)},"tid":{json.dumps(tid)}' for pid, tid in lanes]


def _labels(timeline: Timeline) -> Iterator[str]:
    for number, thread in enumerate(timeline.threads):
        for kind, name in (("process_name", thread.process), ("thread_name", thread.name)):
            if name:
                yield _metadata(kind, *_lane(timeline, number), {"name": name})


def _args(**facts: int) -> str:
    """The facts that are known."""
    known = {name.replace("_", " "): value for name, value in facts.items() if value >= 0}
    return f',"args":{json.dumps(known)}'


def _host(timeline: Timeline) -> Iterator[str]:
    t = timeline.host
    names = [_quoted(name) for name in timeline.names]
    lanes = _lanes(timeline)
    categories = [HOST_CATEGORIES[kind] for kind in HostKind]
    columns = (t.start_ns, t.dur_ns, t.name, t.thread, t.kind, t.correlation, t.external, t.sequence)
    for start, duration, name, thread, kind, correlation, external, sequence in rows(columns):
        args = _args(correlation=correlation, External_id=external, Sequence_number=sequence)
        yield _complete(names[name], categories[kind], lanes[thread], start, duration, args)


def _device(timeline: Timeline) -> Iterator[str]:
    t = timeline.device
    names = [_quoted(name) for name in timeline.names]
    categories = [DEVICE_CATEGORIES[kind] for kind in DeviceKind]
    columns = (t.start_ns, t.dur_ns, t.name, t.device, t.stream, t.kind, t.correlation, t.external, t.bytes)
    for start, duration, name, device, stream, kind, correlation, external, size in rows(columns):
        args = _args(device=device, stream=stream, correlation=correlation, External_id=external, bytes=size)
        yield _complete(names[name], categories[kind], f'"pid":{device},"tid":{stream}', start, duration, args)


def _ranges(timeline: Timeline) -> Iterator[str]:
    t = timeline.ranges
    for start, duration, name, device, stream in rows((t.start_ns, t.dur_ns, t.name, t.device, t.stream)):
        lane, args = f'"pid":{device},"tid":{stream}', _args(device=device, stream=stream)
        yield _complete(_quoted(timeline.names[name]), "gpu_user_annotation", lane, start, duration, args)


def _flows(timeline: Timeline) -> Iterator[str]:
    """Arrows from each launch to what it started."""
    launched = np.flatnonzero(timeline.launch >= 0)
    calls = timeline.launch[launched]
    host, device = timeline.host, timeline.device
    lanes = _lanes(timeline)
    columns = (host.start_ns[calls], host.thread[calls])
    arrivals = (device.start_ns[launched], device.device[launched], device.stream[launched], launched)
    for begun, thread, start, number, stream, row in rows((*columns, *arrivals)):
        flow = f'"cat":"ac2g","name":"ac2g","id":{row + 1}'
        yield f'{{"ph":"s",{flow},{lanes[thread]},"ts":{_microseconds(begun)}}}'
        yield f'{{"ph":"f","bp":"e",{flow},"pid":{number},"tid":{stream},"ts":{_microseconds(start)}}}'
