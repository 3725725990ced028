"""callback-bound: logging, metrics, plots, checkpoints or validation take much of the loop."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from unstall.child.seams import modules
from unstall.diagnose import source, vocabulary
from unstall.diagnose.blame import culprit as culprit_of
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.own_threads import of_other_work
from unstall.diagnose.patterns.base import Pattern, UsualRemedy, at, grows_by, name_of, of_step, part
from unstall.diagnose.placing import Placed, count, is_call_of
from unstall.diagnose.source import SourceFunction
from unstall.diagnose.thresholds import BESIDE_MODEL, BLOCKED, EVALUATES_BETWEEN, NOTABLE_CALLBACK, SEEN, VALIDATES
from unstall.records.observations import Frame
from unstall.records.report import CallbackTime, Culprit, Finding
from unstall.records.run import Utilization
from unstall.records.vocabulary import CALLBACK, ENV, VALIDATION
from unstall.text.units import percent, seconds
from unstall.threshold import Range

_ADVICE = {
    "metrics": "update running sums each step, and compute the metric over the whole history once an epoch",
    "plotting": "plot at the end of an epoch, or write the numbers and draw them later",
    "checkpoint": "save less often, or in the background (copy to the CPU, write from another thread)",
    "logging": "log every N steps, and buffer: no flush or fsync in the step",
    "validation": "validate less often or on a part, in larger batches, and compute its metrics on whole arrays",
}

_VALIDATION = "validation"


class CallbackBound(Pattern):
    """What is called around training costs more than it should."""

    name = "callback-bound"
    brief = "logging, metrics, plots, checkpoints or validation take much of the loop"
    doing = ((CALLBACK.name, "logs, plots or writes checkpoints"),)
    causes = ("metrics", "logging", "plotting", "checkpoint", _VALIDATION)
    phases = (CALLBACK.name,)
    headroom_is_of_phases = True
    advice = "do it every N steps, or in a thread of its own"
    by_hand = (
        ("checkpoint", "save less often, or copy the state and write it in a background thread"),
        (_VALIDATION, "validate less often, on fewer samples, or in larger batches"),
        (None, "do it less often, once an epoch, or in a background thread that gets copies"),
    )
    calibration = ((None, None, Range(0.8, 1.1, 1.8, "zoo: 0.9 to 1.6, median 1.1 of six")),)
    usual_remedies = (
        ("checkpoint", UsualRemedy("saving less often", Range(0.0, 0.1, 0.5, "one save in ten stays"))),
        (
            _VALIDATION,
            UsualRemedy("a cheaper validation", Range(0.0, 0.3, 0.95, "less often, or batched: what of it is needed")),
        ),
        (None, UsualRemedy("doing it every ten steps", Range(0.0, 0.1, 0.3, "one turn in ten stays"))),
    )

    def takes_caches(self, host: HostFeatures) -> bool:
        """Its phase is none of the model's."""
        return True

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the time in known callbacks, and in code that the samples show to be one; or in validation."""
        if host.phase_s(VALIDATION.name) > host.phase_s(CALLBACK.name) and _validates(host):
            return self._in_validation(host)
        taken_s = host.phase_s(CALLBACK.name)
        lost_s, more_evidence, more_advice = of_other_work(host, taken_s)
        headroom = host.headroom_without(taken_s + lost_s)
        if headroom < SEEN:
            return None
        samples = host.blame.in_phase(CALLBACK.name)
        cause = _cause(host, samples)
        phase = host.measurement.phase(CALLBACK.name)
        share = host.share(CALLBACK.name)
        culprit = host.blame.main_culprit(samples) or _as_culprit(host)
        evidence = [f"{of_step(share, taken_s)} on average, is outside training: {cause}"]
        for callback in _costliest(host)[:2]:
            if callback.step_s > NOTABLE_CALLBACK * host.step_s:
                evidence.append(f"{callback.name} took {seconds(callback.mean_s)} a call, in {callback.calls:,} calls")
        if phase and phase.blocked_s > BLOCKED * taken_s:
            evidence.append(
                f"{percent(min(1.0, phase.blocked_s / taken_s))} of it is blocked, off the cores (disk or network)"
            )
        if host.measurement.slowing is not None:
            evidence.append(grows_by(host.measurement.slowing))
        return self.finding(
            cause=cause,
            culprit=culprit,
            share=share,
            phases=self.phases,
            headroom=headroom,
            evidence=[*evidence, *more_evidence],
            advice=[_advice(host, cause, culprit), *more_advice],
        )

    def _in_validation(self, host: HostFeatures) -> Finding:
        taken_s, share = host.phase_s(VALIDATION.name), host.share(VALIDATION.name)
        between = host.measurement.between
        times = between.count if between is not None else 0
        samples = [placed for placed in (*host.blame.main, *host.blame.pauses) if placed.phase == VALIDATION.name]
        beside = [placed for placed in samples if not _in_module(placed.sample.frames)]
        # The model has to be called. What surrounds its calls is what may be mended, where it is much.
        mendable = beside if count(beside) >= BESIDE_MODEL * count(samples) else samples
        return self.finding(
            cause=_VALIDATION,
            culprit=_part_of(share, culprit_of(mendable, count(samples), "main", host.blame.loops)),
            share=share,
            phases=(VALIDATION.name,),
            headroom=host.headroom_without(taken_s),
            evidence=[f"{of_step(share, taken_s)} on average, is validation, {times:,} times between steps"],
            advice=[_ADVICE[_VALIDATION]],
        )

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the callback, or what callbacks are."""
        if finding.cause == _VALIDATION:
            return f"{part(finding)} goes into validation{at(finding.culprit, ', above all in ')}"
        what = name_of(finding.culprit) or "logging, metrics, plots or checkpoints"
        return f"{part(finding)} goes into {what}"


def _validates(host: HostFeatures) -> bool:
    """Whether much of the loop is an evaluation that recurs between training steps.

    Calls of a model without gradients may also be a teacher's, in every step, or a policy's that acts; where steps are
    those of an environment, validation is what steps another.
    """
    between = host.measurement.between
    acts = host.measurement.kind != "env" and host.phase_s(ENV.name) > 0
    if between is None or acts or host.share(VALIDATION.name) < VALIDATES:
        return False
    return between.mean_s >= EVALUATES_BETWEEN * host.attributed.get(VALIDATION.name, 0.0)


def _part_of(share: float, of_validation: Culprit | None) -> Culprit | None:
    """With shares of the loop, of one that has shares of the validation."""
    if of_validation is None:
        return None
    callers = [msgspec.structs.replace(caller, share=share * (caller.share or 0.0)) for caller in of_validation.callers]
    return msgspec.structs.replace(of_validation, share=share * of_validation.share, callers=callers)


def _in_module(frames: Sequence[Frame]) -> bool:
    return any(is_call_of(modules.FORWARD, frame) for frame in frames)


def _costliest(host: HostFeatures) -> list[CallbackTime]:
    """Those that are called in the measured steps, the most time first."""
    callbacks = [callback for callback in host.measurement.callbacks if callback.step_s > 0]
    return sorted(callbacks, key=lambda callback: -callback.step_s)


def _as_culprit(host: HostFeatures) -> Culprit | None:
    """The method of a framework's callback that takes the most time, where samples name none."""
    callback = next((callback for callback in _costliest(host) if callback.line), None)
    if callback is None:
        return None
    return Culprit(
        function=callback.name,
        file=callback.file,
        line=callback.line,
        share=min(1.0, callback.step_s / host.step_s),
        code=source.code_at(callback.file, callback.line),
    )


def _advice(host: HostFeatures, cause: str, culprit: Culprit | None) -> str:
    """By the cause; of an event whose work no name tells, how to do it less often."""
    events = (callback.event for callback in _costliest(host) if culprit and callback.name == culprit.function)
    event = next(events, None)
    if cause == "logging" and event:
        return f"do it every N steps or once an epoch, not at every {event}, or in a thread of its own"
    return _ADVICE[cause]


def _cause(host: HostFeatures, samples: list[Placed]) -> str:
    """By what most samples say; by the seams' names when there are none."""
    votes: dict[str, float] = {}
    for placed in samples:
        files = [frame.file for frame in placed.sample.frames]
        words = " ".join(function.qualname for _, function in placed.program[1:] or placed.program)
        cause = vocabulary.callback_cause(files, words)
        if cause == "logging" and len(placed.program) > 1 and _saves_model(*placed.program[-1]):
            cause = "checkpoint"
        votes[cause] = votes.get(cause, 0.0) + placed.count
    if not votes:
        for callback in host.measurement.callbacks:
            cause = vocabulary.callback_cause([f"/{callback.framework}/"], callback.name)
            votes[cause] = votes.get(cause, 0.0) + callback.step_s
    return max(votes, key=lambda cause: votes[cause]) if votes else "logging"


def _saves_model(frame: Frame, function: SourceFunction) -> bool:
    """Whether a function asks for a model's state: what it does with it, to compress it say, is saving it."""
    return vocabulary.calls_checkpoint(source.calls_in(frame.file, function))


PATTERN = CallbackBound()
