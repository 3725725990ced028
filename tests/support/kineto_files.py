"""Traces as torch.profiler writes them, made by the tests that read them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

PID = 100
MAIN = 100
START_US = 1_700_000_000_000_000


def host(name: str, ts: float, dur: float, cat: str = "cpu_op", tid: int = MAIN, **args: Any) -> dict[str, Any]:
    """An event of a host thread; ts and dur are microseconds, ts from the start of the trace."""
    named = {_argument(key): value for key, value in args.items()}
    return {"ph": "X", "cat": cat, "name": name, "pid": PID, "tid": tid, "ts": _time(ts), "dur": dur, "args": named}


def api(
    name: str, ts: float, dur: float, correlation: int, cat: str = "cuda_runtime", tid: int = MAIN
) -> dict[str, Any]:
    return host(name, ts, dur, cat, tid, correlation=correlation)


def work(
    name: str,
    ts: float,
    dur: float,
    correlation: int = -1,
    cat: str = "kernel",
    stream: int = 7,
    device: int = 0,
    **args: Any,
) -> dict[str, Any]:
    """An event of a device stream."""
    named = {_argument(key): value for key, value in args.items()}
    facts = {"device": device, "stream": stream, "correlation": correlation, **named}
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": device,
        "tid": stream,
        "ts": _time(ts),
        "dur": dur,
        "args": facts,
    }


def step(number: int, ts: float, dur: float, tid: int = MAIN) -> dict[str, Any]:
    return host(f"ProfilerStep#{number}", ts, dur, "user_annotation", tid)


def thread_name(tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "thread_name", "pid": PID, "tid": tid, "ts": _time(0), "args": {"name": name}}


def document(events: list[Any], **entries: Any) -> dict[str, Any]:
    return {"schemaVersion": 1, **entries, "traceEvents": events}


def write(path: Path, content: Any) -> Path:
    """Bytes as they are, all else as JSON; gzipped if the name says so."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def small(steps: int = 3) -> list[dict[str, Any]]:
    """A training loop: each step an operator that launches two kernels, a copy, and a synchronisation."""
    events = [thread_name(MAIN, "thread 100 (python)")]
    for n in range(steps):
        at, ids = n * 1000.0, 10 * n + 1
        events += [
            step(n, at, 990),
            host(
                "aten::linear",
                at + 10,
                200,
                External_id=n + 1,
                Input_Dims=[[8, 4], [4, 2]],
                Input_type=["float", "float"],
            ),
            host("aten::addmm", at + 20, 150, External_id=n + 1001),
            api("cudaLaunchKernel", at + 30, 5, ids),
            api("cudaLaunchKernel", at + 50, 5, ids + 1),
            work("gemm", at + 100, 300, ids, External_id=n + 1001),
            work("add", at + 400, 50, ids + 1, External_id=n + 1001),
            api("cudaMemcpyAsync", at + 230, 5, ids + 2),
            work("Memcpy DtoH (Device -> Pageable)", at + 460, 10, ids + 2, "gpu_memcpy", bytes=4),
            api("cudaStreamSynchronize", at + 240, 240, ids + 3),
        ]
    return events


def _argument(key: str) -> str:
    """External_id for "External id"; those that are in lower case are written as they are."""
    return key if key.startswith("wait") else key.replace("_", " ")


def _time(ts: float) -> float | int:
    return round(START_US + ts, 3) if ts % 1 else START_US + int(ts)


def names(timeline, table):
    """Of each row of a table of the timeline."""
    return [timeline.names[n] for n in table.name]
