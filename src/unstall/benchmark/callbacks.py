"""Time per callback and event, over the whole run, from the spans of one process."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unstall.benchmark.reader import ProcessRecording, Spans, ends, starts
from unstall.benchmark.steps import Loop, main_spans
from unstall.child.seams.callbacks import CALLBACK
from unstall.records.report import CallbackTime
from unstall.records.vocabulary import SeamGroup

Bools = npt.NDArray[np.bool_]


def callback_times(process: ProcessRecording, loop: Loop, chosen: Bools, run_s: float) -> list[CallbackTime]:
    """Of each callback and event the calls and their time, the most time first.

    Those of frameworks come with the place of the method; a library's own call (``torch.save``) that a callback makes
    belongs to the callback.

    Args:
        process: whose spans, of all its threads.
        loop: its main loop.
        chosen: which of the loop's steps are measured, for the seconds a step.
        run_s: wall time of the run, for the shares.
    """
    events = [number for number, seam in process.seams.items() if seam.group == SeamGroup.EVENTS]
    of_events = process.spans[np.isin(process.spans["name"], events)]
    calls = process.spans[np.isin(process.spans["name"], process.of(CALLBACK))]
    outermost = np.concatenate([of_events, calls[~_inside(calls, of_events)]])
    places = {fact["name"]: (str(fact["file"]), int(fact["line"])) for fact in process.facts.get("callback", [])}
    main_thread = main_spans(process)["thread"][:1]
    times = []
    for number in np.unique(outermost["name"]):
        spans = outermost[outermost["name"] == number]
        name = process.names[int(number)]
        framework, *owner, event = name.partition(".")[2].split(".")
        file, line = places.get(name, ("", 0))
        total_s = float(spans["dur"].sum() / 1e9)
        times.append(
            CallbackTime(
                framework=framework,
                callback=".".join(owner) or framework,
                event=event,
                calls=len(spans),
                total_s=total_s,
                mean_s=total_s / len(spans),
                share=min(1.0, total_s / run_s) if run_s > 0 else 0.0,
                step_s=_per_step(spans[np.isin(spans["thread"], main_thread)], loop, chosen),
                file=file,
                line=line,
            )
        )
    return sorted(times, key=lambda time: -time.total_s)


def _inside(calls: Spans, holders: Spans) -> Bools:
    """Which of the calls happen inside one of the holders, none of which is in another of its thread."""
    inside = np.zeros(len(calls), dtype=bool)
    for thread in np.unique(holders["thread"]):
        here = np.flatnonzero(calls["thread"] == thread)
        around = holders[holders["thread"] == thread]
        around = around[np.argsort(around["start"], kind="stable")]
        last = np.searchsorted(starts(around), starts(calls[here]), side="right") - 1
        inside[here] = (last >= 0) & (ends(around)[np.maximum(last, 0)] >= ends(calls[here]))
    return inside


def _per_step(spans: Spans, loop: Loop, chosen: Bools) -> float:
    """Seconds in these spans a measured step."""
    step = loop.step_of(spans)
    counts = (step >= 0) & chosen[np.maximum(step, 0)]
    return float(spans["dur"][counts].sum() / 1e9 / chosen.sum())
