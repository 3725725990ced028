"""TensorBoard scalars of a run, written without torch or TensorFlow."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from unstall.records.report import Report
from unstall.text.units import known

_MISSING = 'TensorBoard is not installed; run: pip install "unstall[tensorboard]"'


class _Scalar(NamedTuple):
    tag: str
    value: float
    step: int
    wall_time: float


def write(report: Report, steps: Sequence[tuple[int, float]], directory: Path) -> None:
    """Append an event file: seconds of each step, then the phases' shares and the headroom.

    Args:
        report: The finished report.
        steps: Index and seconds of each measured step.
        directory: TensorBoard's log directory; made if missing.

    Raises:
        RuntimeError: TensorBoard is not installed.
        OSError: The directory cannot be written to.
    """
    writer_type, event_pb2, summary_pb2 = _tensorboard()
    directory.mkdir(parents=True, exist_ok=True)
    writer = writer_type(str(directory))
    try:
        for tag, value, step, wall_time in _scalars(report, steps):
            summary = summary_pb2.Summary()
            summary.value.add(tag=tag, simple_value=value)
            writer.add_event(event_pb2.Event(wall_time=wall_time, step=step, summary=summary))
    finally:
        writer.close()


def _tensorboard() -> tuple[Any, Any, Any]:
    """The event file writer and the protocol buffers' modules."""
    try:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as error:
        raise RuntimeError(_MISSING) from error
    return EventFileWriter, event_pb2, summary_pb2


def _scalars(report: Report, steps: Sequence[tuple[int, float]]) -> Iterator[_Scalar]:
    # The run has just ended: counting back from now gives the steps the spacing they had.
    now = time.time()
    wall_time = now - sum(duration for _, duration in steps)
    last = 0
    for last, duration in steps:
        wall_time += duration
        yield _Scalar("unstall/step_seconds", duration, last, wall_time)
    for phase in report.phases:
        if known(phase.share):
            yield _Scalar(f"unstall/share/{phase.name}", phase.share, last, now)
    if report.run.steps and known(report.verdict.headroom):
        yield _Scalar("unstall/headroom", report.verdict.headroom, last, now)
