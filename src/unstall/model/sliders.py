"""Predictions for every position of the HTML page's sliders, made in advance: a page cannot simulate."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from unstall.model.build import of_archive
from unstall.model.changes import ChangeError, Changes
from unstall.model.pipeline_model import Pipeline
from unstall.model.predict import predict
from unstall.model.recorded import NotRecorded
from unstall.records.archive import Archive
from unstall.records.what_if import Knob, Outcome, Sliders

_WORKERS = (0, 1, 2, 3, 4, 6, 8)
_FACTORS = (1.0, 0.75, 0.5, 0.25, 0.1, 0.0)
_MOST_THREADS = 5


def sliders(archive: Archive, *, model: Callable[[Archive], Pipeline] = of_archive) -> Sliders | None:
    """The table of a run's pipeline model, about a hundred predictions; None where the run gives no model."""
    try:
        pipeline = model(archive)
    except NotRecorded:
        return None
    knobs = list(_knobs(archive, pipeline))
    if not knobs or pipeline.measured_s <= 0:
        return None
    outcomes = []
    for positions in itertools.product(*(knob.values for knob in knobs)):
        prediction = predict(pipeline, _changes(knobs, positions))
        outcomes.append(Outcome(prediction.step_s, prediction.low, prediction.high, prediction.bottleneck))
    return Sliders(knobs, outcomes)


def _knobs(archive: Archive, pipeline: Pipeline) -> Iterator[Knob]:
    if pipeline.has_loader:
        yield _counts("workers", "loader workers", _WORKERS, pipeline.layout.workers)
    blamed = _blamed(archive, pipeline)
    if blamed is not None:
        yield Knob(blamed, f"time of {blamed}", _FACTORS, 0)
    threads = range(1, min(int(pipeline.layout.cores), _MOST_THREADS) + 1)
    if not pipeline.on_device and len(threads) > 1:
        yield _counts("threads", "torch threads", threads, pipeline.threads)


def _counts(kind: str, label: str, usual: Iterable[int], now: int) -> Knob:
    values = tuple(sorted({*usual, now}))
    return Knob(kind, label, values, values.index(now))


def _blamed(archive: Archive, pipeline: Pipeline) -> str | None:
    """What the verdict blames, if the model knows it by name; else the data where there is a loader."""
    culprit = archive.report.verdict.culprit
    names = [culprit.function] if culprit is not None else []
    for name in [*names, *(["data"] if pipeline.has_loader else [])]:
        try:
            if predict(pipeline, Changes(scales={name: 0.0})).step_s < pipeline.measured_s:
                return name
        except ChangeError:
            continue
    return None


def _changes(knobs: list[Knob], positions: tuple[float, ...]) -> Changes:
    """The knobs that are not where the recorded run had them."""
    moved = {knob.kind: value for knob, value in zip(knobs, positions) if value != knob.values[knob.now]}
    workers, threads = (int(moved.pop(name)) if name in moved else None for name in ("workers", "threads"))
    return Changes(workers=workers, threads=threads, scales=moved)
