"""Loops that the program marks itself with ``unstall.steps``; :mod:`unstall.api` records them."""

from __future__ import annotations

from typing import Any

from unstall.records.vocabulary import DATA_WAIT, Seam, Tick

NEXT = Seam(
    "~step.next",
    phase=DATA_WAIT.name,
    counts=Tick.EXPLICIT,
    frames=((r"unstall[/\\]api\.py$", r"steps"),),
)

SEAMS = (NEXT,)
TARGETS: dict[str, Any] = {}
