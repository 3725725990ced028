"""The answers that are no report of a run: of ``unstall what-if`` and of ``unstall data``.

Times are seconds, shares are 0..1, unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from unstall.records.encoding import indented_json
from unstall.records.vocabulary import KnownBy


class WhatIf(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """What the pipeline model predicts for one set of changes; times are seconds a step."""

    changes: str
    step_s: float
    low: float
    high: float
    """``low`` to ``high`` holds the true time in about nine of ten cases."""
    speedup: float
    speedup_low: float
    speedup_high: float
    bottleneck: str
    utilisation: Mapping[str, float] = msgspec.field(default_factory=dict)
    """Share of the time that each server is at work."""
    limit_s: float = 0.0
    """The step at least, without chance and contention."""


class WhatIfReport(msgspec.Struct, kw_only=True, frozen=True):
    """The answer of ``unstall what-if``: what was asked, or where nothing was, what changes would bring the most."""

    run: str
    command: Sequence[str]
    recorded_step_s: float
    answers: Sequence[WhatIf]
    elasticities: Mapping[str, float]
    """Per cent that the step grows by when a component takes a per cent longer, after the changes; they sum to 1."""
    kind: Literal["what-if"] = "what-if"
    schema: str = "unstall-what-if/1"
    known_by: KnownBy = "predicted"
    notes: Sequence[str] = msgspec.field(default_factory=list)

    def to_json(self) -> bytes:
        """Indented JSON."""
        return indented_json(self)


class DataStage(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """One stage of the data pipeline by itself; seconds an item: a sample, or a batch where the dataset gives these."""

    name: str
    seconds: float
    cpu_s: float
    blocked_s: float
    """Neither on a core nor waiting for one: disk, network, locks, sleep."""
    known_by: Literal["replayed", "timed", "traced"]
    """How it was timed: by itself on kept inputs; where it is called; or with the interpreter's profile hook."""
    share: float = 0.0
    """Share of the time of an item, collate included."""
    depth: int = 0
    """Stages that it is called by."""
    file: str = ""
    line: int = 0
    cores_needed: float | None = None
    """Cores needed to keep up with the model; None where the model's pace is not known."""
    note: str = ""


class DataRate(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """The whole loader without the model, with so many workers."""

    workers: int
    items_per_s: float | None = None
    cores: float | None = None
    """Cores that it kept busy."""
    start_s: float | None = None
    """Seconds until its first batch."""
    error: str = ""


class DataReport(msgspec.Struct, kw_only=True, frozen=True):
    """The data pipeline alone, as ``unstall data`` measures it."""

    command: Sequence[str]
    loader: Mapping[str, Any]
    """The loader as the program made it: dataset, length, batch_size, ..., and whether items are samples or batches."""
    stages: Sequence[DataStage]
    rates: Sequence[DataRate]
    ceiling_items_per_s: float | None
    """The highest rate of all numbers of workers."""
    model_items_per_s: float | None
    """What the model would take if data were free, from a recorded run; None where there is none."""
    conclusion: str
    first_item_s: float = 0.0
    """The very first item, caches cold."""
    kind: Literal["data"] = "data"
    schema: str = "unstall-data/1"
    notes: Sequence[str] = msgspec.field(default_factory=list)

    def to_json(self) -> bytes:
        """Indented JSON."""
        return indented_json(self)


class Knob(msgspec.Struct, frozen=True):
    """A slider: what it changes and what its positions are."""

    kind: str
    """``workers``, ``threads``, or a component whose time is scaled."""
    label: str
    values: tuple[float, ...]
    now: int
    """The position of the recorded run."""


class Outcome(msgspec.Struct, frozen=True):
    """What the model predicts for one combination of positions; seconds a step."""

    step_s: float
    low: float
    high: float
    bottleneck: str


class Sliders(msgspec.Struct, frozen=True):
    """An outcome for each combination of positions, the last knob turning fastest."""

    knobs: Sequence[Knob]
    outcomes: Sequence[Outcome]
