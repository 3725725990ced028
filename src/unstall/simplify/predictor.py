"""What `unstall what-if` says of an experiment, from the first run alone: shown beside what was measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from unstall import model
from unstall.child.experiments.interventions.base import Specification
from unstall.simplify import registry
from unstall.simplify.experiment import Experiment

if TYPE_CHECKING:
    from unstall.benchmark.measure import LoopMeasurement


class PredictedSpeedup(NamedTuple):
    """Base over arm, and the ends of an interval that is meant to hold the true one in nine cases of ten."""

    value: float
    low: float
    high: float


def pipeline_of(measured: LoopMeasurement | None) -> model.Pipeline | None:
    """The pipeline model of a run that has just been measured; None where it gives none."""
    try:
        return model.of(measured) if measured is not None else None
    except ValueError:
        return None


def speedup(pipeline: model.Pipeline | None, experiment: Experiment) -> PredictedSpeedup | None:
    """What an experiment is to bring; None without a model, and where it has no word for what is changed."""
    settings = experiment.settings or {}
    if pipeline is None or experiment.placebo or settings.keys() - {"loader"}:
        return None
    try:
        base = model.predict(pipeline, _changes(experiment.base))
        arm = model.predict(pipeline, _changes((*experiment.base, *experiment.arm), settings.get("loader")))
    except model.ChangeError:
        return None
    if not arm.low:
        return None
    return PredictedSpeedup(*(base.step_s / step_s for step_s in (arm.step_s, arm.high, arm.low)))


def _changes(interventions: Iterable[Specification], loader: Specification | None = None) -> model.Changes:
    """The same changes, asked as a person would. Raises ChangeError where the model has no word for one."""
    loader = loader or {}
    words: list[str] = []
    settings: dict[str, Any] = {"workers": loader.get("num_workers"), "prefetch": loader.get("prefetch_factor")}
    for spec in interventions:
        change = dict(registry.of(spec).what_if(spec) or {})
        if not change:
            raise model.ChangeError(f"the model has no word for {spec['kind']}")
        words += [f"{name}={factor}x" for name, factor in change.pop("scales", {}).items()]
        settings |= change
    return model.parse(words, **settings)
