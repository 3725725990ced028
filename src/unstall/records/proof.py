"""What ``unstall prove`` says of a change: one of five words, and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

ProofVerdict = Literal["proven", "different", "not-faster", "inconclusive", "refused"]
"""Faster and the same; not the same; the same and no faster; not enough time to tell; it changes what is measured."""


class ProofRatio(msgspec.Struct, kw_only=True, frozen=True):
    """How many times faster whole runs are, start-up included, with an interval that holds whenever one stops."""

    value: float
    low: float
    high: float


class Difference(msgspec.Struct, kw_only=True, frozen=True):
    """Something that the changed program does otherwise."""

    kind: Literal["values", "counts", "effects"]
    """Numbers; how many steps, calls or samples; or exit code, files and words printed."""
    place: str
    """The place in the run or in the files, for a person."""
    detail: str
    """What is there instead of what, and by how much it differs."""

    def __str__(self) -> str:
        return f"{self.place}: {self.detail}"


class SideFigures(msgspec.Struct, kw_only=True, frozen=True):
    """A figure of the original and of the changed program; the median over their runs."""

    original: float
    changed: float


class Proof(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """The verdict on a change, and what it rests on."""

    verdict: ProofVerdict
    reason: str
    """The reason for the verdict, in a sentence."""
    changes: str
    """What is judged against what: a patch's name, revisions, folders."""
    sameness: Literal["exact", "close", "reduced"] | None = None
    """None where it differs, or that is not known."""
    ratio: ProofRatio | None = None
    first_difference: Difference | None = None
    known_by: Sequence[str] = msgspec.field(default_factory=list)
    """What was compared, and how."""
    seconds: SideFigures | None = None
    """Seconds of a whole run, start-up included, until its last process has ended."""
    memory_bytes: SideFigures | None = None
    """Peak resident memory of the largest process."""
    cpu_s: SideFigures | None = None
    """Core-seconds of a whole run, of all its processes that were seen."""
    break_even_steps: int | None = None
    """Steps after which a slower start has paid off; 0 where the start is no slower. None where that is not known."""
    unreached: Sequence[str] = msgspec.field(default_factory=list)
    """Changed lines that no run reached, as ``file:first-last``: nothing is known of them."""
    pairs: int = 0
    """Pairs of whole runs that were timed."""
    more_s: float | None = None
    """About how many seconds more an answer would take."""
