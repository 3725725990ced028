"""What the pipeline model predicts for a trial, of which it knows all but the arm: said beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from unstall import model
from unstall.model import Changes, Pipeline, Timed
from unstall.model.adjust import as_long_as, recorded_alone
from unstall.model.timed import seconds_in, timed_of
from unstall.simplify.trial import Specification, Trial

if TYPE_CHECKING:
    from unstall.benchmark.measure import Measured
    from unstall.records.measurements import Measurement

_STUB_S = 0.5e-6
"""An answer of a stub, beyond what any call and the answer itself take."""
_TIED_S = 20e-6
"""Of one that gradients flow through, forward and backward."""
_FORWARD = ".forward"
_PHASES = {"callbacks": "callback", "collectives": "comm"}


class Predictor:
    """Answers for one run; without a model of it, None to everything."""

    def __init__(self, measured: Measured | None, timed: Mapping[str, Timed | None] | None = None):
        """``timed``: what was gauged of functions, by name."""
        self._timed = {name: one for name, one in (timed or {}).items() if one is not None}
        self._pipeline = _pipeline(measured)
        self._callbacks_left, self._alone = 0.0, frozenset[str]()
        if measured is not None and self._pipeline is not None:
            measurement = measured.measurement
            self._callbacks_left = _callbacks_left(measurement, self._pipeline)
            self._alone = recorded_alone(self._pipeline, {phase.name: phase.mean_s for phase in measurement.phases})

    def ratio(self, trial: Trial, phases: Mapping[str, float] | None = None) -> float | None:
        """Base over arm, as the model has it; None where the model has no word for the trial.

        ``phases``: seconds a step of each phase in the trial's base, where that has been measured already: what the
        arm changes is predicted from there.
        """
        if self._pipeline is None or trial.placebo or "ranks" in (trial.settings or {}):
            return None
        try:
            pipeline = self._as_in_base(self._pipeline, trial, phases)
            arm = self._changes(pipeline, trial.arm, trial.settings)
            before, after = model.predict(pipeline).step_s, model.predict(pipeline, arm).step_s
            return before / (after + self._stubs_s(pipeline, trial.arm))
        except (ValueError, ZeroDivisionError):
            return None  # the model has no word for it, or the program no place

    def _as_in_base(self, pipeline: Pipeline, trial: Trial, phases: Mapping[str, float] | None) -> Pipeline:
        """The pipeline with what the trial's base changes, and as long as that was measured to take."""
        if phases and not trial.base:
            pipeline = as_long_as(pipeline, phases, self._alone)
        for name, one in self._timed.items():
            pipeline = model.knowing(pipeline, name, one, None if trial.base else phases, self._alone)
        if trial.base:
            pipeline = model.apply(pipeline, self._changes(pipeline, trial.base, None))
            pipeline = as_long_as(pipeline, phases, self._alone) if phases else pipeline
        return pipeline

    def _changes(
        self, pipeline: Pipeline, interventions: tuple[Specification, ...], settings: Specification | None
    ) -> Changes:
        changes = _asked(interventions, settings, self._callbacks_left)
        left = 1.0
        for one in interventions:
            if one["kind"] == "stub":
                left -= _backward_share(pipeline, one["name"])
        if left == 1.0 or "backward" in changes.scales:
            return changes
        return replace(changes, scales={**changes.scales, "backward": max(0.0, left)})

    def _stubs_s(self, pipeline: Pipeline, interventions: tuple[Specification, ...]) -> float:
        """Seconds a step that the answers of stubs take: of many short calls it shows.

        Where the pipeline is without what calls a function, that is not called any more.
        """
        stubs = [one["name"] for one in interventions if one["kind"] == "stub"]
        return sum(
            _answers_s(self._timed[name]) * _left(pipeline, name, self._timed[name])
            for name in stubs
            if name in self._timed
        )


def _left(pipeline: Pipeline, name: str, timed: Timed) -> float:
    """Of a function's calls, the share that the pipeline still has, by the time that they take."""
    if not timed.seconds:
        return 1.0
    seconds = sum(sum(seconds_in(pipeline, key).values()) for key in pipeline.parts.find(name))
    return min(1.0, seconds / timed.seconds)


def _backward_share(pipeline: Pipeline, name: str) -> float:
    """Of backward, what is inside a function: an answer from a record has none of its own.

    Of a module that was not timed, as much as of forward.
    """
    timed, whole_s = timed_of(pipeline, name), pipeline.seen_s("backward")
    if timed is not None:
        return timed.backward.seconds / whole_s if whole_s else 0.0
    found = pipeline.parts.find(name) if name.endswith(_FORWARD) else ()
    return sum(pipeline.parts.share("forward", key) for key in found)


def _answers_s(timed: Timed) -> float:
    """Seconds a step of a function that answers from a record."""
    each_s = _STUB_S + timed.answer_s + (_TIED_S if timed.backward.entries else 0.0)
    return timed.calls * each_s + timed.backward.zeros_s


def _pipeline(measured: Measured | None) -> Pipeline | None:
    if measured is None:
        return None
    try:
        return model.of(measured)
    except ValueError:
        return None


def _callbacks_left(measurement: Measurement, pipeline: Pipeline) -> float:
    """Of what samples count among the callbacks, the share that is in no call known as one: the program's own code."""
    seen_s = pipeline.seen_s("callback")
    return max(0.0, 1 - measurement.phase_s("callback") / seen_s) if seen_s else 0.0


def _asked(interventions: tuple[Specification, ...], settings: Specification | None, callbacks_left: float) -> Changes:
    """What the interventions change, in the words of the model. Raises ChangeError where it has none.

    ``callbacks_left``: of the phase, what is not in the calls that the intervention takes out.
    """
    words, threads = [], None
    for one in interventions:
        name = str(one.get("name", one["kind"]))
        name = "forward" if one["kind"] == "delay" and name.endswith(_FORWARD) else _PHASES.get(name, name)
        if one["kind"] == "threads":
            threads = int(one["threads"])
        elif one["kind"] == "delay":
            words.append(f"{name}=+{100 * one['share']:g}%")
        elif one["kind"] == "sleep":
            raise model.ChangeError("the model knows no component that sleeps instead")
        elif one["kind"] == "callbacks":
            words.append(f"{name}={callbacks_left:.6f}x")
        else:
            words.append(f"{'data' if one['kind'] == 'cached' else name}=0")
    loader = (settings or {}).get("loader", {})
    return model.parse(
        words, threads=threads, workers=loader.get("num_workers"), prefetch=loader.get("prefetch_factor")
    )
