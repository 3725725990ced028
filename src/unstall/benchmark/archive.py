"""What is kept of a run when it is over: ``recording.msgpack.gz`` beside ``report.json`` in the run's directory.

The raw recordings of a run may take gigabytes and are thrown away; this holds what the later steps ask of it (every
step and its phases, the resources, the stacks, each batch that was made), about 30 bytes a step before compression.
It is MessagePack, typed and compressed: reading one that a stranger made runs no code of theirs, takes a bounded
amount of memory, and ends in an :class:`ArchiveError` if anything in it is not as it should be.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from unstall.benchmark import rundir
from unstall.benchmark.thresholds import KEPT_FETCHES, KEPT_STEPS, MOST_ARCHIVE_BYTES
from unstall.child.seams.loader import EPOCH, FETCH
from unstall.records.archive import VERSION, Archive, Excerpt, FetchSeries, StepSeries
from unstall.records.encoding import packed
from unstall.records.report import Report

if TYPE_CHECKING:
    from unstall.benchmark.measure import LoopMeasurement
    from unstall.records.observations import Observation

FILE_NAME = "recording.msgpack.gz"
REPORT_NAME = "report.json"


MAX_REPORT_BYTES = 1 << 26
"""The largest size of a report alone."""
_FREE_BYTES = 1 << 26
_DENSEST = 100
"""Recordings unpack to ten times their size, or twenty. More than ``_FREE_BYTES`` that are packed denser than this are
no recording but made to take memory.
"""
_CHUNK = 1 << 20

_LEVEL = 1  # of compression: five times as fast as the usual one, and a tenth larger

_DAMAGED = (msgspec.MsgspecError, gzip.BadGzipFile, EOFError, zlib.error, ValueError, RecursionError, MemoryError)
"""What reading a file raises that is no archive, or is cut short."""


class ArchiveError(ValueError):
    """The file cannot be read or is no archive of a run; the message is one line that names it."""


def make(
    report: Report, measured: LoopMeasurement | None, observation: Observation, excerpts: Sequence[Excerpt] = ()
) -> Archive:
    """What is kept of a run that has ended; ``excerpts`` are of the source that its report blames."""
    return Archive(
        report=report,
        began=observation.began,
        ended=observation.ended,
        measurement=msgspec.structs.replace(measured.measurement, samples=[]) if measured else None,
        steps=step_series(measured) if measured else None,
        fetches=fetch_series(measured) if measured else None,
        epochs=_epochs(measured) if measured else [],
        resources=observation.points,
        machine=observation.machine,
        disturbed=sorted([*observation.disturbed, *observation.sampled]),
        stacks=measured.measurement.samples if measured else observation.samples,
        excerpts=excerpts,
    )


def write(path: Path, archive: Archive, *, most_bytes: int = MOST_ARCHIVE_BYTES) -> None:
    """Write it whole or not at all. Raises OSError where it is larger, uncompressed, or the disk does not take it."""
    data = packed(archive)
    if len(data) > most_bytes:
        raise OSError(f"{path.name} would take {len(data) >> 20} MB; the most is {most_bytes >> 20}")
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(gzip.compress(data, _LEVEL, mtime=0))
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read(path: Path) -> Archive:
    """Read it back. Raises :class:`ArchiveError` for whatever is not an archive of this version or an older one."""
    try:
        archive = msgspec.msgpack.decode(_unpacked(path), type=Archive)
    except _DAMAGED as error:
        raise ArchiveError(f"{path} is not a recording of a run: {_one_line(error)}") from error
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {error.strerror or error}") from error
    if not 1 <= archive.version <= VERSION:
        raise ArchiveError(f"{path} was written by another version of unstall (format {archive.version})")
    _check(path, archive)
    if archive.measurement is None:
        return archive
    measurement = msgspec.structs.replace(archive.measurement, samples=archive.stacks)
    return msgspec.structs.replace(archive, measurement=measurement)


def load(name: str, folder: Path | None = None) -> Archive:
    """The run that a person names, see :func:`unstall.benchmark.rundir.find`; also from a report alone.

    Raises :class:`ArchiveError` where there is none by that name or it cannot be read.
    """
    try:
        path = rundir.find(name, folder, finished=True)
    except LookupError as error:
        raise ArchiveError(str(error.args[0])) from error
    if path.is_dir():
        path = next((path / file for file in (FILE_NAME, REPORT_NAME) if (path / file).is_file()), path / FILE_NAME)
    return _from_report(path) if path.suffix == ".json" else read(path)


def _from_report(path: Path) -> Archive:
    try:
        if path.stat().st_size > MAX_REPORT_BYTES:
            raise ArchiveError(f"{path} is larger than {MAX_REPORT_BYTES >> 20} MB, too large for a report")
        return Archive(report=Report.from_json(path.read_bytes()))
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {error.strerror or error}") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ArchiveError(f"{path} is not a report of unstall: {_one_line(error)}") from error


def _unpacked(path: Path) -> bytearray:
    """The file's content; ValueError if it swells to more than an archive may take."""
    most = min(MOST_ARCHIVE_BYTES, max(_FREE_BYTES, path.stat().st_size * _DENSEST))
    data = bytearray()
    with gzip.open(path) as file:
        while chunk := file.read1(_CHUNK):
            data += chunk
            if len(data) > most:
                raise ValueError(f"it unpacks to more than {most >> 20} MB")
    return data


def _check(path: Path, archive: Archive) -> None:
    """Times that go backwards or are no numbers would only be noticed much later."""
    if archive.steps is None:
        return
    import numpy as np

    durations = archive.steps.durations
    times = [durations, *(archive.steps.phase(name) for name in archive.steps.phases_f4)]
    if archive.fetches is not None:
        times.append(archive.fetches.wall)
    if not all(np.isfinite(series).all() and (series >= 0).all() for series in times):
        raise ArchiveError(f"{path} is not a recording of a run: it holds invalid times")


def step_series(measured: LoopMeasurement) -> StepSeries:
    """Every step of a run that has just been measured."""
    import numpy as np

    loop = measured.loop
    first = max(0, len(loop) - KEPT_STEPS)
    phases = loop.phases[first:]
    return StepSeries(
        boundaries_f8=np.append(loop.starts[first:], loop.ends[-1]).astype("<f8").tobytes(),
        phases_f4={
            name: phases[:, index].astype("<f4").tobytes()
            for index, name in enumerate(loop.phase_names)
            if phases[:, index].any()
        },
        measured_u1=measured.chosen[first:].astype("u1").tobytes(),
        gap_u1=loop.at_boundary[first:].astype("u1").tobytes(),
        first=first,
    )


def fetch_series(measured: LoopMeasurement) -> FetchSeries | None:
    """The batches that the loop's loader made, from the processes that made them."""
    import numpy as np

    from unstall.benchmark.reader import held_s, starts
    from unstall.child.layout import CPU_KNOWN

    loader, main = measured.measurement.loader, measured.process
    if loader is None:
        return None
    makers = [process for process in measured.processes if process.parent == main.pid] if loader.workers else [main]
    named = [(process.pid, process.named(FETCH.event, main_only=False)) for process in makers]
    spans = np.concatenate([spans for _, spans in named]) if named else main.spans[:0]
    pids = np.repeat([pid for pid, _ in named], [len(spans) for _, spans in named])
    order = np.argsort(spans["start"], kind="stable")[:: 1 + len(spans) // KEPT_FETCHES]
    spans, pids = spans[order], pids[order]
    known = spans["flags"] & CPU_KNOWN != 0
    wall = spans["dur"] / 1e9
    return FetchSeries(
        starts_f8=starts(spans).astype("<f8").tobytes(),
        wall_f4=wall.astype("<f4").tobytes(),
        cpu_f4=np.where(known, spans["cpu"] / 1e7, np.nan).astype("<f4").tobytes(),
        blocked_f4=np.where(known, np.clip(wall - held_s(spans), 0, None), np.nan).astype("<f4").tobytes(),
        pid_i4=pids.astype("<i4").tobytes(),
    )


def _epochs(measured: LoopMeasurement) -> list[tuple[float, float]]:
    spans = measured.process.named(EPOCH.event, main_only=False)
    return [(float(span["start"]) / 1e9, float(span["dur"]) / 1e9) for span in spans]


def _one_line(error: BaseException) -> str:
    return " ".join((str(error) or type(error).__name__).split())[:200]
