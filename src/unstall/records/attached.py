"""What can be said of a program from outside, without a line of it changed: the answer of ``unstall attach``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from unstall.records.report import Culprit
from unstall.records.vocabulary import PhaseName


class AttachedProcess(msgspec.Struct, kw_only=True, frozen=True):
    """One Python process of the program while it was looked at."""

    pid: int
    role: str
    """main, rank 3, loader worker, launcher or helper."""
    cores: float
    """Cores that it kept busy, all its threads."""
    waits_for_core: float
    """Share of the time that its main thread was ready to run and had no core."""
    read_bytes_per_s: float
    """Bytes a second that reached the disk."""
    read_chars_per_s: float
    """Bytes a second that were asked of files, from the page cache or not."""
    rss_bytes: int
    threads: Sequence[tuple[str, float]]
    """(name, cores) of its busiest threads."""
    phases: Mapping[PhaseName, float]
    """Shares of the main thread's samples."""
    place: Culprit | None = None
    """Where in the program its main thread was seen most."""
    collective: str = ""
    """The collective that it was seen in most; ``backward`` where DDP exchanges gradients there."""
    stuck: bool = False
    """Its main thread was seen in one stack only, and it used no core."""


class AttachReport(msgspec.Struct, kw_only=True, frozen=True):
    """A verdict from outside. Shares are of time, because steps are not seen."""

    pid: int
    command: Sequence[str]
    watched_s: float
    pattern: str
    """One of a report's patterns, or ``hung``."""
    headline: str
    share: float | None
    """Share of the time that goes into what the headline names."""
    culprit: Culprit | None
    evidence: Sequence[str]
    unknown: Sequence[str]
    """What cannot be seen from outside."""
    processes: Sequence[AttachedProcess]
