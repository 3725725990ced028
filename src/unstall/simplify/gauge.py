"""Before a function's trials: how long its calls take, and how cold they leave the caches, for what is predicted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from unstall.child import seams
from unstall.model.caches import L2_BYTES
from unstall.model.timed import Backward, Timed
from unstall.simplify.blocks import Pace
from unstall.simplify.interventions.base import key_of
from unstall.simplify.laboratory import Laboratory
from unstall.simplify.segment import Segment
from unstall.simplify.trial import Specification, Trial

_CANARY = 0.6  # of the second cache: what a small model, and the code that runs it, keep there
_TIMING_S, _COOLING_S = 1.5, 0.7
_STEPS = 5
"""At least, but no whole epochs: it is for the function's own calls."""
_ONCE = 1.5  # calls a step
_FEW_CALLS, _MORE = 8, 3.0
"""Of a function called in few steps, so many times as long tells more."""


def functions_of(trial: Trial) -> list[Specification]:
    """The functions that a trial changes: name and file. Work that seams record is timed already."""
    named = [one for one in (*trial.base, *trial.arm) if "name" in one and one["name"] not in seams.finders()]
    return [{"name": one["name"], "file": one.get("file")} for one in named]


def gauge(lab: Laboratory, function: Specification, pace: Pace, l2_bytes: int) -> Timed | None:
    """Two stretches in which a function does what it always does; None where the main thread does not call it."""
    timing = {"kind": "timed", **function}
    segment = _under(lab, timing, pace, _TIMING_S)
    timed = _within(segment, _told(lab, "timed", timing))
    if timed is not None and timed.calls * len(segment.durations) < _FEW_CALLS:
        segment = _under(lab, timing, pace, _MORE * _TIMING_S)
        timed = _within(segment, _told(lab, "timed", timing))
    if timed is None:
        return None
    cooling = {"kind": "cooling", **function, "step_s": timed.seconds, "bytes": int(_CANARY * (l2_bytes or L2_BYTES))}
    _under(lab, cooling, pace, _COOLING_S)
    cooled = _told(lab, "cooling", cooling) or {}
    by_call, by_step = cooled.get("by_call") or 0.0, cooled.get("by_step")
    if timed.calls < _ONCE:
        by_step = by_call * min(timed.calls, 1.0)  # with less than a call in each, most steps are without it
    elif by_step is None:
        by_step = 1 - (1 - by_call) ** timed.calls
    return replace(timed, emptied=by_step, emptied_by_call=by_call)


def _within(segment: Segment, told: dict[str, Any] | None) -> Timed | None:
    """What was told of the segment's steps; None where no call ended in them."""
    steps = len(segment.durations)

    def inside(told: list[list[float]]) -> list[list[float]]:
        return [one for one in told if segment.began <= one[0] < segment.ended]

    bins = inside(told["bins"]) if told is not None else []
    if told is None or not bins:
        return None
    left = inside(told["backward"])
    zeros_s = told["zeros"] * len(left) / len(told["backward"]) if left else 0.0
    calls, seconds = sum(one[2] for one in bins) / steps, sum(one[1] for one in bins) / steps
    return Timed(
        share=seconds / float(segment.durations.mean()),
        calls=calls,
        phases=segment.phases,
        overhead_s=calls * told["overhead"],
        answer_s=told["answer"],
        seconds=seconds,
        backward=Backward(sum(one[1] for one in left) / steps, len(left) / steps, zeros_s / steps),
    )


def _under(lab: Laboratory, intervention: Specification, pace: Pace, seconds: float) -> Segment:
    """Steps with it in force, for so long."""
    lab.switch([intervention])
    lab.settle(1, 0.0, pace.step_s)
    segment = lab.run(min(pace.steps, _STEPS), seconds, pace.step_s)
    lab.switch([])
    return segment


def _told(lab: Laboratory, kind: str, intervention: Specification) -> dict[str, Any] | None:
    """What the main process told of it last."""
    main = lab.session.main
    facts = [
        one
        for one in lab.facts(kind)
        if one["key"] == key_of(intervention) and main is not None and one["process"] == main.pid
    ]
    return facts[-1] if facts else None
