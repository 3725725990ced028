"""Read a recording while its program runs: the spans since a point in time, as one small recording of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unstall.benchmark.reader import ProcessRecording, Spans, read_facts, read_spans


class RecordingFollower:
    """Reads on where it stopped. ValueError when the file is no recording."""

    def __init__(self, directory: Path, pid: int):
        self.directory = directory
        self.pid = pid
        self.path = directory / f"rec-{pid}.bin"
        self._read = 0
        self._spans: list[Spans] = []

    def forget(self) -> None:
        """What was recorded so far is not asked for any more."""
        self._new()
        self._spans = []

    def since(self, t: float) -> ProcessRecording:
        """The spans that began after ``t`` (monotonic seconds), with all the facts there are."""
        self._spans.append(self._new())
        spans = np.concatenate(self._spans)
        spans = spans[spans["start"] >= t * 1e9]
        self._spans = [spans]
        order = np.lexsort((spans["depth"], spans["start"]))
        names, facts = read_facts(self.directory / f"info-{self.pid}.jsonl")
        return ProcessRecording(self.pid, 0, spans[order], names, facts)

    def _new(self) -> Spans:
        """The records since the last time."""
        spans, _ = read_spans(self.path, self._read)
        self._read += len(spans)
        return spans
