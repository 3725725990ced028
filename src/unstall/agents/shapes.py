"""The shapes of answers: what an agent reads of each tool, field by field."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Resource(BaseModel):
    """More of an answer, to be read where it is needed."""

    uri: str
    path: str = Field(description="The same as a file on this machine, for as long as the server runs.")
    holds: str


class Answer(BaseModel):
    """What every tool answers."""

    headline: str
    next: list[str] = Field(description="What to do now, the most useful first.")
    notes: list[str] = Field(default=[], description="What makes the figures less certain.")
    resources: list[Resource]


class Gain(BaseModel):
    """How many times faster the step would be, with the 95 % interval and how it is known."""

    value: float
    low: float
    high: float
    known_by: str = Field(description="How it is known: measured by experiment, predicted by a model, or estimated.")


class Bottleneck(BaseModel):
    """What stalls the program."""

    pattern: str
    cause: str | None = None
    share: float | None = Field(None, description="Of the step, 0 to 1.")
    culprit: str | None = Field(None, description="function file:line")
    ceiling: Gain | None = Field(None, description="If the culprit took no time: no fix of it gains more.")
    expected_gain: Gain | None = Field(None, description="With the remedy that fits best.")
    advice: list[str] = []


class ReportAnswer(Answer):
    """Of a run, or of a GPU trace."""

    run: str = Field(description="The run's id, for the other tools.")
    steps: int
    steps_per_s: float | None
    exit_code: int | None = Field(None, description="Of the program.")
    verdict: Bottleneck
    others: list[Bottleneck] = []


class ExperimentRow(BaseModel):
    """One intervention and how many times faster the step was with it."""

    name: str
    speedup: float
    low: float
    high: float
    conclusive: bool


class SimplifyAnswer(ReportAnswer):
    """Of experiments on throw-away runs."""

    experiments: list[ExperimentRow]


class Tried(BaseModel):
    """A change that was thought of, and what became of it."""

    change: str
    status: str
    speedup: float | None
    sameness: str | None = Field(description="exact: bit for bit; close: but for rounding; reduced: neither.")
    why_not: str | None


class OptimizeAnswer(ReportAnswer):
    """Of a search for changes."""

    total_speedup: float | None = Field(description="Original against changed, measured side by side.")
    total_ci95: tuple[float, float] | None = Field(description="Its 95 % interval.")
    sameness: str | None
    changes_files: bool = Field(description="Whether there is a patch among the resources.")
    tried: list[Tried]


class StageRow(BaseModel):
    """A stage of the data pipeline; seconds an item."""

    name: str
    seconds: float
    share: float
    place: str


class DataAnswer(Answer):
    """Of the data pipeline alone."""

    ceiling_items_per_s: float | None
    model_items_per_s: float | None
    items_per_s_by_workers: dict[str, float | None]
    stages: list[StageRow]


class Prediction(BaseModel):
    """What a change would bring."""

    changes: str
    speedup: float
    low: float
    high: float
    bottleneck: str


class WhatIfAnswer(Answer):
    """Of the pipeline model."""

    recorded_step_s: float
    predictions: list[Prediction]


class CompareAnswer(Answer):
    """Of two runs."""

    conclusion: str = Field(description="faster, slower, no difference, or unknown")
    speedup: float | None
    low: float | None
    high: float | None
    smallest_detectable: float | None
    differences: list[str]


class HistoryRow(BaseModel):
    """A row of the history."""

    id: str
    kind: str
    started: str
    command: str
    steps_per_s: float | None
    verdict: str
    culprit: str | None
    speedup: float | None


class HistoryAnswer(Answer):
    """The runs of this project, the newest first."""

    runs: list[HistoryRow]


class ProveAnswer(Answer):
    """The verdict on a change."""

    verdict: str = Field(description="proven, different, not-faster, inconclusive or refused.")
    sameness: str | None = Field(None, description="exact, close or reduced; none where it differs or is not known.")
    ratio: Gain | None = Field(None, description="How many times faster whole runs are, start-up included.")
    first_difference: str | None = None
    known_by: list[str] = Field(default=[], description="What was compared, and how.")
