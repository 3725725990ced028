"""What `unstall what-if` says of a trial from the first, watched run alone: shown beside what was measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from unstall import model
from unstall.simplify.trial import Specification, Trial

if TYPE_CHECKING:
    from unstall.benchmark.measure import Measured

_FORWARD = ".forward"
_PHASES = {"collectives": "comm", "cached": "data"}
_UNKNOWN = ("sleep", "callbacks", "network")


class Predictor:
    """Predictions for one run; None to everything where there is no model of it."""

    def __init__(self, pipeline: model.Pipeline | None):
        self.pipeline = pipeline

    @classmethod
    def of(cls, measured: Measured | None) -> Predictor:
        """For a run that has just been measured."""
        try:
            return cls(model.of(measured) if measured is not None else None)
        except ValueError:
            return cls(None)

    def speedup(self, trial: Trial) -> float | None:
        """Base over arm; None where the model has no word for what the trial changes."""
        settings = trial.settings or {}
        if self.pipeline is None or trial.placebo or "ranks" in settings:
            return None
        try:
            base = model.predict(self.pipeline, _changes(trial.base))
            arm = model.predict(self.pipeline, _changes((*trial.base, *trial.arm), settings.get("loader")))
        except model.ChangeError:
            return None
        return base.step_s / arm.step_s if arm.step_s else None


def _changes(interventions: Iterable[Specification], loader: Specification | None = None) -> model.Changes:
    """The same changes in the words of the model. Raises ChangeError where it has none."""
    scales, threads = {}, None
    for one in interventions:
        kind, name = one["kind"], str(one.get("name", one["kind"]))
        if kind == "threads":
            threads = int(one["threads"])
        elif kind == "delay":
            scales["forward" if name.endswith(_FORWARD) else name] = 1 + float(one["share"])
        elif kind in _UNKNOWN or (kind == "stub" and name.endswith(_FORWARD)):
            raise model.ChangeError(f"a recorded run does not tell what {kind} of {name} leaves")
        else:
            scales[_PHASES.get(name, name)] = 0.0
    loader = loader or {}
    return model.Changes(
        workers=loader.get("num_workers"), prefetch=loader.get("prefetch_factor"), threads=threads, scales=scales
    )
