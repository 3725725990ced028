"""Chrome's trace event format (JSON), which chrome://tracing and ui.perfetto.dev read.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

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
ROWS = 100_000
"""Rows that are Python objects at a time."""


def write(timeline: Timeline, path: Path) -> None:
    """In Kineto's dialect, so that what reads torch.profiler's traces reads this too; gzipped if the name ends so."""
    with _open(path) as file:
        file.write(_head(timeline))
        separator = ""
        for lines in (_labels(timeline), _host(timeline), _device(timeline), _ranges(timeline), _flows(timeline)):
            for line in lines:
                file.write(separator + line)
                separator = ",\n"
        file.write("\n]}\n")


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "wt", compresslevel=3, encoding="utf-8")
    return path.open("w", encoding="utf-8")


def _head(timeline: Timeline) -> str:
    head: dict[str, Any] = {"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": timeline.origin_ns}
    head["deviceProperties"] = [
        {"id": device.id, "name": device.name, "totalGlobalMem": device.memory_bytes, "numSms": device.multiprocessors}
        for device in timeline.devices
    ]
    if timeline.rank is not None:
        head["distributedInfo"] = {"rank": timeline.rank, "world_size": timeline.world_size}
    return json.dumps(head)[:-1] + ', "traceEvents": [\n'


def _lane(timeline: Timeline, thread: int) -> tuple[int | str, int | str]:
    known = timeline.threads[thread]
    return (known.pid if known.pid >= 0 else known.process), (known.tid if known.tid >= 0 else known.name)


def _labels(timeline: Timeline) -> Iterator[str]:
    for number, thread in enumerate(timeline.threads):
        pid, tid = _lane(timeline, number)
        for what, name in (("process_name", thread.process), ("thread_name", thread.name)):
            if name:
                yield json.dumps({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}})


def _time(ns: int) -> str:
    """Microseconds with three decimals, exactly."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def _args(**metrics: int) -> str:
    """The metrics that are known, as a JSON object."""
    return json.dumps({name.replace("_", " "): value for name, value in metrics.items() if value >= 0})


def _host(timeline: Timeline) -> Iterator[str]:
    t = timeline.host
    names = [json.dumps(name) for name in timeline.names]
    lanes = ['"pid":{},"tid":{}'.format(*map(json.dumps, _lane(timeline, n))) for n in range(len(timeline.threads))]
    categories = [HOST_CATEGORIES[kind] for kind in HostKind]
    columns = (t.start_ns, t.dur_ns, t.name, t.thread, t.kind, t.correlation, t.external, t.sequence)
    for start, duration, name, thread, kind, correlation, external, sequence in _rows(*columns):
        args = _args(correlation=correlation, External_id=external, Sequence_number=sequence)
        yield (
            f'{{"ph":"X","cat":"{categories[kind]}","name":{names[name]},{lanes[thread]},'
            f'"ts":{_time(start)},"dur":{_time(duration)},"args":{args}}}'
        )


def _device(timeline: Timeline) -> Iterator[str]:
    t = timeline.device
    names = [json.dumps(name) for name in timeline.names]
    categories = [DEVICE_CATEGORIES[kind] for kind in DeviceKind]
    columns = (t.start_ns, t.dur_ns, t.name, t.device, t.stream, t.kind, t.correlation, t.external, t.bytes)
    for start, duration, name, device, stream, kind, correlation, external, size in _rows(*columns):
        args = _args(device=device, stream=stream, correlation=correlation, External_id=external, bytes=size)
        yield (
            f'{{"ph":"X","cat":"{categories[kind]}","name":{names[name]},"pid":{device},"tid":{stream},'
            f'"ts":{_time(start)},"dur":{_time(duration)},"args":{args}}}'
        )


def _ranges(timeline: Timeline) -> Iterator[str]:
    t = timeline.ranges
    for start, duration, name, device, stream in _rows(t.start_ns, t.dur_ns, t.name, t.device, t.stream):
        yield (
            f'{{"ph":"X","cat":"gpu_user_annotation","name":{json.dumps(timeline.names[name])},"pid":{device},'
            f'"tid":{stream},"ts":{_time(start)},"dur":{_time(duration)},"args":{_args(device=device, stream=stream)}}}'
        )


def _flows(timeline: Timeline) -> Iterator[str]:
    """Arrows from each launch to what it started."""
    launched = np.flatnonzero(timeline.launch >= 0)
    calls = timeline.launch[launched]
    host, device = timeline.host, timeline.device
    lanes = ['"pid":{},"tid":{}'.format(*map(json.dumps, _lane(timeline, n))) for n in range(len(timeline.threads))]
    columns = (host.start_ns[calls], host.thread[calls])
    arrivals = (device.start_ns[launched], device.device[launched], device.stream[launched], launched)
    for begun, thread, start, number, stream, row in _rows(*columns, *arrivals):
        flow = f'"cat":"ac2g","name":"ac2g","id":{row + 1}'
        yield f'{{"ph":"s",{flow},{lanes[thread]},"ts":{_time(begun)}}}'
        yield f'{{"ph":"f","bp":"e",{flow},"pid":{number},"tid":{stream},"ts":{_time(start)}}}'


def _rows(*columns: NDArray[Any]) -> Iterator[tuple[int, ...]]:
    for at in range(0, len(columns[0]), ROWS):
        yield from zip(*(column[at : at + ROWS].tolist() for column in columns))
