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

PatternName = Literal[
    "input-bound",
    "transfer-bound",
    "compute-bound",
    "overhead-bound",
    "sync-bound",
    "host-bound",
    "callback-bound",
    "environment-bound",
    "communication-bound",
    "straggler",
    "memory-growth",
    "healthy",
]
KnownBy = Literal["measured", "predicted", "estimated"]
Confidence = Literal["high", "medium", "low"]
