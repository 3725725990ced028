"""TensorBoard scalars of a run, written without torch or TensorFlow."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from unstall.exports.exporter import Exporter
from unstall.exports.tables import measured_seconds
from unstall.records.archive import Archive
from unstall.records.report import Report
from unstall.records.vocabulary import NO_VERDICT, UNEXPLAINED
from unstall.text.units import known


class TensorBoard(Exporter):
    """An event file: seconds of each measured step, then the phases' shares and the headroom."""

    name = "tensorboard"
    help = "Write TensorBoard scalars into this folder."
    metavar = "FOLDER"
    takes = ("archive",)
    extra = "tensorboard"

    def export(self, source: Archive, target: str, flags: frozenset[str] = frozenset()) -> None:
        """Append an event file to the log directory, which is made if it is missing."""
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        writer = EventFileWriter(target)
        try:
            for tag, value, step, wall_time in _scalars(source.report, measured_seconds(source)):
                summary = summary_pb2.Summary()
                summary.value.add(tag=tag, simple_value=value)
                writer.add_event(event_pb2.Event(wall_time=wall_time, step=step, summary=summary))
        finally:
            writer.close()


EXPORTER = TensorBoard()


def _scalars(report: Report, seconds: Sequence[float]) -> Iterator[tuple[str, float, int, float]]:
    """Tag, value, step, wall time."""
    # The run has just ended: counting back from now gives the steps the spacing they had.
    now = time.time()
    wall_time = now - sum(seconds)
    last = 0
    for last, duration in enumerate(seconds):
        wall_time += duration
        yield ("unstall/step_seconds", duration, last, wall_time)
    for phase in report.phases:
        if known(phase.share):
            yield (f"unstall/share/{phase.name}", phase.share, last, now)
    verdict = report.verdict
    if report.run.steps and known(verdict.headroom) and verdict.pattern not in (UNEXPLAINED, NO_VERDICT):
        yield ("unstall/headroom", verdict.headroom, last, now)
    for name, promised in (("ceiling", verdict.ceiling), ("expected_gain", verdict.expected_gain)):
        if promised is not None and report.run.steps:
            yield (f"unstall/{name}", promised.value, last, now)
            yield (f"unstall/{name}_low", promised.low, last, now)
            yield (f"unstall/{name}_high", promised.high, last, now)
