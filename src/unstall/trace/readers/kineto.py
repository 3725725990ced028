"""Traces of torch.profiler (Kineto) and others in Chrome's JSON format, packed or plain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from unstall.trace.library import library
from unstall.trace.readers.assemble import assemble
from unstall.trace.readers.document import read_document
from unstall.trace.readers.native import NativeScanner
from unstall.trace.readers.rows import TRUNCATED, EventScanner
from unstall.trace.readers.source import Chunks
from unstall.trace.timeline import Device, Timeline, TraceError, problem_lines

Progress = Callable[[float], None]
"""Told the share of the file that has been read, 0..1."""


def new_scanner() -> EventScanner:
    """The scanner in C, or where it was not built, the one in Python."""
    if functions := library():
        return NativeScanner(functions)
    from unstall.trace.readers.events import PythonEventScanner

    return PythonEventScanner()


def read_kineto(path: Path, progress: Progress | None = None) -> Timeline:
    """Read a trace; TraceError if there is nothing in it to read."""
    chunks = Chunks(path)
    scanner = new_scanner()
    try:
        metadata, problems = read_document(_reporting(chunks, progress), scanner)
    except TraceError as error:
        raise TraceError(f"{path}: {chunks.broken or error}") from None
    finally:
        chunks.close()
    timeline = assemble(scanner, str(path))
    for what, count in problems.items():
        timeline.problems[what] = max(count, timeline.problems.get(what, 0))
    if chunks.broken:
        timeline.problems.pop(TRUNCATED, None)  # that is why
        timeline.problems[chunks.broken] = 1
    if not len(timeline.host) and not len(timeline.device):
        raise TraceError(f"{path}: no trace events in it{_reasons(timeline.problems)}")
    _describe(timeline, metadata)
    return timeline


def _reporting(chunks: Chunks, progress: Progress | None) -> Iterator[bytes]:
    for chunk in chunks:
        if progress:
            progress(chunks.read / max(chunks.size, 1))
        yield chunk


def _reasons(problems: dict[str, int]) -> str:
    return f" ({'; '.join(problem_lines(problems))})" if problems else ""


def _describe(timeline: Timeline, metadata: dict[str, Any]) -> None:
    """What the entries next to the events say of rank, devices and clock."""
    timeline.metadata = metadata
    distributed = metadata.get("distributedInfo")
    if isinstance(distributed, dict):
        timeline.rank = _int(distributed.get("rank"))
        timeline.world_size = _int(distributed.get("world_size"))
    if timeline.rank is None:
        timeline.rank = rank_from_name(timeline.path)
    listed = metadata.get("deviceProperties")
    if isinstance(listed, list):
        timeline.devices = [_device(entry) for entry in listed if isinstance(entry, dict)]
    timeline.origin_ns += _int(metadata.get("baseTimeNanoseconds")) or 0


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _device(entry: dict[str, Any]) -> Device:
    major, minor = _int(entry.get("computeMajor")), _int(entry.get("computeMinor"))
    number = _int(entry.get("id"))
    return Device(
        id=-1 if number is None else number,
        name=str(entry.get("name", "")),
        memory_bytes=_int(entry.get("totalGlobalMem")),
        multiprocessors=_int(entry.get("numSms")),
        compute="" if major is None else f"{major}.{minor or 0}",
    )


def rank_from_name(path: str) -> int | None:
    """From names such as rank3.json.gz, rank-34.Jul_15.pt.trace.json, trace_rank_0.json, worker7_step_12.json."""
    match = re.search(r"(?i)(?:^|[^a-z])(?:rank|worker)[-_ ]?(\d{1,6})(?!\d)", Path(path).name)
    return int(match[1]) if match else None
