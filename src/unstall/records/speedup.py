"""Two words for two things that a finding may promise: the ceiling, and the gain to expect of a remedy."""

from __future__ import annotations

import msgspec

from unstall.records.vocabulary import Confidence, KnownBy


class Speedup(msgspec.Struct, kw_only=True, frozen=True):
    """How many times faster the step would be, and the 95 % interval of that."""

    value: float
    low: float
    high: float
    confidence: Confidence
    """Confidence in the figure, not in the pattern: by the width of the interval, and never above the finding's own."""
    known_by: KnownBy


class ExpectedGain(Speedup, kw_only=True, frozen=True):
    """With the named remedy: what it leaves of the component still costs."""

    remedy: str
    """The remedy as a noun: "a cheaper transform", "more loader workers"."""
