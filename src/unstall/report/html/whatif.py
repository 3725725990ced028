"""Predictions for every position of the sliders, made beforehand: a page cannot simulate, but it can look up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Knob:
    """A slider: what it is called and what its positions are."""

    label: str
    values: tuple[str, ...]
    """As shown at each position."""
    now: int
    """The position of the recorded run."""


@dataclass(frozen=True)
class Outcome:
    """What the model predicts for one combination of positions; seconds a step."""

    step_s: float
    low: float
    high: float
    bottleneck: str


@dataclass
class WhatIf:
    """The table behind the sliders: an outcome for each combination, the last knob turning fastest."""

    knobs: list[Knob] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Plain data for the page."""
        limits = sorted({outcome.bottleneck for outcome in self.outcomes})
        return {
            "knobs": [{"label": knob.label, "values": list(knob.values), "now": knob.now} for knob in self.knobs],
            "stepS": [outcome.step_s for outcome in self.outcomes],
            "low": [outcome.low for outcome in self.outcomes],
            "high": [outcome.high for outcome in self.outcomes],
            "limits": limits,
            "limit": [limits.index(outcome.bottleneck) for outcome in self.outcomes],
        }
