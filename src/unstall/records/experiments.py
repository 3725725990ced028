"""What the experiments of ``unstall simplify`` measured, in a report."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from unstall.records.vocabulary import KnownBy


class Ceiling(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """Steps per second if everything but this component, or this component alone, were free."""

    component: str
    steps_per_s: float
    known_by: KnownBy
    ci95: tuple[float, float] | None = None
    gap: float | None = None


class ReportedExperiment(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """One intervention and what it did to the step time."""

    name: str
    intervention: str
    ratio: float
    ci95: tuple[float, float]
    predicted_ratio: float | None = None
    predicted_interval: tuple[float, float] | None = None
    """Meant to hold the true ratio in nine cases of ten."""
    segments: int | None = None
    component: str | None = None
    """What was free, or slowed, in it."""
    conclusive: bool = True
    """False where noise could explain what was seen, and could hide an effect that matters."""
    elasticity: float | None = None
    """For a delay: relative change of the step time over that of the component's own time; 1 on the critical path."""
    notes: Sequence[str] = msgspec.field(default_factory=list)


class NotMeasured(msgspec.Struct, kw_only=True, frozen=True):
    """An experiment without a result, and why."""

    name: str
    intervention: str
    why: str


class Study(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """What the experiments of ``unstall simplify`` tell together. Seconds are a step's."""

    base_s: float
    """The step of the program as it is, in the experiments."""
    elasticity_sum: float | None = None
    """Sum over all components that were slowed: 1 where they account for the whole step."""
    elasticity_ci95: tuple[float, float] | None = None
    elasticity_says: str = ""
    """What the sum means, in words."""
    waiting_s: float | None = None
    """Seconds by which the step is shorter with cached batches, besides ``taken_s``."""
    taken_s: float | None = None
    """What the loader's workers cost by taking cores from the step: with placebos in their place it stays."""
    disagreements: Sequence[str] = msgspec.field(default_factory=list)
    """Where observation and experiment say different things: both, and why."""
    deeper: Sequence[str] = msgspec.field(default_factory=list)
    """What shows once the first bottleneck is gone."""
    failures: Sequence[NotMeasured] = msgspec.field(default_factory=list)
    untried: Sequence[str] = msgspec.field(default_factory=list)
    sandbox: str = ""
    """What kept the program's files as they were."""
    runs: int = 1
    """How often the program was started; more than for the trials where it ends before they do."""
