"""The words of a report: the phases of a step, the patterns of a verdict, and how a figure is known.

The JSON schema of a report lists the same words, and ``docs/patterns`` says what each pattern means.
"""

from __future__ import annotations

from typing import Literal

PhaseName = Literal[
    "data_wait",
    "transfer",
    "forward",
    "backward",
    "optimizer",
    "sync",
    "comm",
    "env",
    "callback",
    "validation",
    "other",
]
PHASES: tuple[PhaseName, ...] = PhaseName.__args__  # type: ignore[attr-defined]

PatternName = str
"""The name of a pattern; which there are is said by their objects, see :mod:`unstall.diagnose.patterns`."""

HEALTHY: PatternName = "healthy"
NO_VERDICT: PatternName = "no-verdict"
KnownBy = Literal["measured", "predicted", "estimated"]
Confidence = Literal["high", "medium", "low"]
