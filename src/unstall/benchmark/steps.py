"""Find the steps of the main loop in a process's spans, and split each into phases.

A step runs from one boundary to the next, so all the wall time of the loop belongs to some step: gaps between
epochs, validation and whatever runs outside any known call included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unstall.benchmark.boundaries import Floats, boundaries_of, counting, epochs_of
from unstall.benchmark.evaluations import evaluating
from unstall.benchmark.idle import has_requests, without_request
from unstall.benchmark.reader import NO_PHASE, ProcessRecording, Spans, ends, held_s, starts
from unstall.benchmark.validation import move_evaluations, move_validation
from unstall.child.layout import CPU_KNOWN, MAIN, NETWORK, NOGRAD
from unstall.child.seams.jax import COMPILE, TRACE
from unstall.child.seams.network import SELECT, SOCKET
from unstall.records import vocabulary
from unstall.records.vocabulary import PHASE_NAMES, TRAINING, PhaseName, Tick

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Loop:
    """The steps of the main loop, and the seconds of each phase in each."""

    kind: str
    """What counts the steps: explicit, env, optimizer, request, batch or forward."""
    starts: Floats
    """Start of each step, monotonic seconds."""
    ends: Floats
    phases: Floats
    """Seconds, shape (steps, len(phase_names)); rows sum to the step."""
    blocked: Floats
    """The seconds of ``phases`` spent neither on a core nor waiting for one; same shape."""
    cpu: Floats
    """The seconds of ``phases`` spent on a core; same shape. NaN where no call of the phase was measured."""
    network: Floats
    """The seconds of ``phases`` spent inside socket calls; same shape."""
    network_bytes: Floats
    """Same shape."""
    at_boundary: Bools
    """The step holds an epoch boundary or validation."""
    validation_calls: npt.NDArray[np.int64]
    phase_names: tuple[PhaseName, ...] = PHASE_NAMES
    """The phases of the columns: the built-in ones, then those of plug-ins."""

    @property
    def durations(self) -> Floats:
        return self.ends - self.starts

    def __len__(self) -> int:
        return len(self.starts)

    def step_of(self, spans: Spans) -> npt.NDArray[np.int64]:
        """Index of the step that each span begins in, -1 for a span outside the loop."""
        began = starts(spans)
        return np.where(began < self.ends[-1], np.searchsorted(self.starts, began, side="right") - 1, -1)


def extent_s(loop: Loop | None) -> float:
    """Seconds from the first step to the last; none without a loop."""
    return float(loop.ends[-1] - loop.starts[0]) if loop is not None else 0.0


def main_spans(process: ProcessRecording) -> Spans:
    """The spans of what drives the loop: of the main thread, or of others where that has no seam.

    Then it is the busiest; of a server, which may have a thread for each request, all that call the model.
    """
    main = process.spans[process.spans["flags"] & MAIN != 0]
    if np.isin(main["name"], process.driving).any() or not len(process.spans):
        return main
    others = process.spans[np.isin(process.spans["name"], process.driving)]
    if not len(others):
        return main
    threads, counts = np.unique(others["thread"], return_counts=True)
    chosen = threads if has_requests(process) else threads[[np.argmax(counts)]]
    return process.spans[np.isin(process.spans["thread"], chosen)]


def driving_threads(process: ProcessRecording) -> frozenset[int]:
    """The numbers of the threads that drive the loop, where the main thread does not."""
    spans = main_spans(process)
    if not len(spans) or spans["flags"][0] & MAIN:
        return frozenset()
    return frozenset(int(thread) for thread in np.unique(spans["thread"]))


def find_loop(process: ProcessRecording, only: str | None = None) -> Loop | None:
    """The main loop of a process, or None when nothing in it repeats. ``only``: the kind of step, if it is known."""
    spans = main_spans(process)
    phase = process.phase_indices(spans)
    # A module that a transform or an environment calls is not a forward of the loop, nor is the environment in which
    # a callback evaluates the policy that of the loop.
    visiting = [*process.counting(Tick.FORWARD), *process.counting(Tick.ENV)]
    guests = np.isin(spans["name"], visiting) & (phase != process.own_phases(spans))
    evaluates = evaluating(process, spans)
    kind, boundaries = boundaries_of(process, spans[~guests & ~evaluates], only)
    if len(boundaries) < 2:
        return None
    if kind in TRAINING:
        boundaries = _with_last_validation(process, spans, boundaries)
    return _split(process, spans, phase, kind, boundaries, spans[evaluates])


def _with_last_validation(process: ProcessRecording, spans: Spans, boundaries: Floats) -> Floats:
    """The boundaries, the last one behind the validation that follows the last step, where others lie between steps.

    That of every other epoch is in the first step of the next; that of the last would be in none.
    """
    forwards = counting(process, spans, Tick.FORWARD)
    quiet = forwards[forwards["flags"] & NOGRAD != 0]
    after = quiet[(starts(quiet) >= boundaries[-1]) & (starts(quiet) < _next_training(forwards, boundaries))]
    holder = np.searchsorted(boundaries, starts(quiet), side="right") - 1
    holding = len(np.unique(holder[(holder >= 0) & (holder < len(boundaries) - 1)]))
    is_rare = 0 < holding < (len(boundaries) - 1) / 2  # a teacher's call is in every step
    if not len(after) or not is_rare or len(counting(process, spans, Tick.ENV)):
        return boundaries
    return np.append(boundaries[:-1], ends(after).max())


def _next_training(forwards: Spans, boundaries: Floats) -> float:
    """When another loop trains after the last step, if one does: one call more with gradients than the steps have."""
    began = starts(forwards[forwards["flags"] & NOGRAD == 0])
    each = np.median(np.histogram(began, boundaries)[0])
    later = began[began >= boundaries[-1]]
    return float(later[0]) if len(later) > each else np.inf


def _blocked_share(spans: Spans) -> Floats:
    """Of each span, the share that was neither on a core nor waiting for one; 0 where nothing is known of its name."""
    length = spans["dur"] / 1e9
    return np.nan_to_num(_share_by_name(spans, np.clip(length - held_s(spans), 0, None)))


def _cpu_share(spans: Spans) -> Floats:
    """Of each span, the share that was on a core; NaN where nothing is known of its name."""
    return np.minimum(_share_by_name(spans, spans["cpu"] / 1e7), 1)


def _share_by_name(spans: Spans, part_s: Floats) -> Floats:
    """A part of each span, as its share.

    CPU time is measured of names that last, and of the shorter of them only of some calls: the others are taken to
    be like those on the whole.
    """
    if not len(spans):
        return np.empty(0)
    known = spans["flags"] & CPU_KNOWN != 0
    length = np.maximum(spans["dur"] / 1e9, 1e-12)
    names = spans["name"]
    measured = np.bincount(names, weights=length * known)
    of_name = np.bincount(names, weights=part_s * known) / np.where(measured > 0, measured, np.nan)
    return np.where(known, part_s / length, of_name[names])


def _own_blocked_s(spans: Spans) -> Floats:
    """Seconds of each span, of one thread and sorted, that it was blocked for itself and not in a span inside it."""
    blocked = spans["dur"] / 1e9 * _blocked_share(spans)
    own = blocked.copy()
    index, depth = np.arange(len(spans)), spans["depth"]
    for level in range(1, int(depth.max(initial=0)) + 1):
        above = np.maximum.accumulate(np.where(depth == level - 1, index, -1))
        inside = (depth == level) & (above >= 0)
        inside[inside] = ends(spans)[above[inside]] >= starts(spans)[inside]
        np.subtract.at(own, above[inside], blocked[inside])
    return np.clip(own, 0, None)


def _split(
    process: ProcessRecording,
    spans: Spans,
    phase: npt.NDArray[np.int64],
    kind: str,
    boundaries: Floats,
    evaluations: Spans,
) -> Loop:
    """Cut the thread's time at the boundaries; spans that cross one are shared out by length.

    ``evaluations``: what steps and resets an environment in which the policy is only evaluated.
    """
    steps, width = len(boundaries) - 1, len(process.phase_names) + 1
    began, ended = starts(spans), ends(spans)
    first = np.clip(np.searchsorted(boundaries, began, side="right") - 1, 0, steps - 1)
    inside = (ended > boundaries[0]) & (began < boundaries[-1])
    own = spans["self"] / 1e9
    blocked, cpu = np.minimum(_own_blocked_s(spans), own), own * _cpu_share(spans)
    bytes_moved = np.where(spans["flags"] & NETWORK != 0, spans["arg"].astype(np.float64), 0)
    is_network = _is_network(process, spans, bool(bytes_moved.any()))

    def table(weights: Floats, wanted: Bools) -> Floats:
        cell = first[wanted] * width + phase[wanted] % width  # NO_PHASE is the last column
        sums = np.bincount(cell, weights=weights[wanted], minlength=steps * width)
        return sums.astype(np.float64).reshape(steps, width)

    seconds = table(own, inside)
    network = table(np.where(is_network, own, 0), inside)
    blocked_s, cpu_s = table(blocked, inside), table(np.nan_to_num(cpu), inside)
    measured = table(np.where(np.isnan(cpu), 0, own), inside)
    moved = table(bytes_moved, inside)
    at_boundary, validation_calls = _gaps(process, spans, boundaries, kind, evaluations)
    if kind == "env":
        seconds = move_evaluations(process, spans, phase, boundaries, seconds, evaluations)
    else:
        seconds = move_validation(process, spans, phase, boundaries, seconds, validation_calls)
    seconds = _move_compiling(process, spans, boundaries, seconds)
    # What no seam claims is `other`; a span that crosses into the next step may claim too much of its first.
    other = process.phase_names.index(vocabulary.OTHER.name)
    idle = process.phase_names.index(vocabulary.IDLE.name)
    claimed = seconds[:, :NO_PHASE].copy()
    claimed[:, other] = 0
    total = np.diff(boundaries)
    excess = np.maximum(claimed.sum(axis=1) / np.maximum(total, 1e-12), 1)
    claimed /= excess[:, None]
    claimed[:, other] = np.clip(total - claimed.sum(axis=1), 0, None)
    claimed[:, idle] = np.minimum(without_request(process, boundaries), claimed[:, other])
    claimed[:, other] -= claimed[:, idle]
    for extra in (network, blocked_s, moved):
        extra[:, other] += extra[:, NO_PHASE]
    return Loop(
        kind,
        boundaries[:-1],
        boundaries[1:],
        claimed,
        blocked_s[:, :NO_PHASE] / excess[:, None],
        _scaled_up(cpu_s, measured, seconds)[:, :NO_PHASE] / excess[:, None],
        network[:, :NO_PHASE],
        moved[:, :NO_PHASE],
        at_boundary,
        validation_calls,
        process.phase_names,
    )


def _scaled_up(part: Floats, measured: Floats, seconds: Floats) -> Floats:
    """A part of the measured seconds, as if all of them had been; NaN in the columns in which none was."""
    total = measured.sum(axis=0)
    return part * np.where(total > 0, seconds.sum(axis=0) / np.where(total > 0, total, 1), np.nan)


def _is_network(process: ProcessRecording, spans: Spans, bytes_moved: bool) -> Bools:
    """Spans of socket calls; an event loop's wait counts only where bytes of the network moved at all."""
    numbers = [number for number in process.of(SOCKET) if bytes_moved or process.names[number] != SELECT]
    return np.isin(spans["name"], numbers)


def _gaps(
    process: ProcessRecording, spans: Spans, boundaries: Floats, kind: str, evaluations: Spans
) -> tuple[Bools, npt.NDArray[np.int64]]:
    """Which steps hold an epoch boundary, and how many calls of validation each holds: of the model, or of `step`."""
    steps = len(boundaries) - 1

    def count(which: Spans) -> npt.NDArray[np.int64]:
        index = np.searchsorted(boundaries, starts(which), side="right") - 1
        return np.bincount(index[(index >= 0) & (index < steps)], minlength=steps)

    validation = count(evaluations) if kind == "env" else np.zeros(steps, dtype=np.int64)
    if kind in (*TRAINING, "explicit"):
        forwards = counting(process, spans, Tick.FORWARD)
        quiet = count(forwards[forwards["flags"] & NOGRAD != 0])
        quiet[count(counting(process, spans, Tick.ENV)) > 0] = 0  # a policy that acts
        # Forwards without gradients in every step (a teacher, an actor) are no validation; in a few steps they are.
        if np.median(quiet) == 0:
            validation = quiet
    epochs = count(epochs_of(process, spans))
    return (validation > 0) | (epochs > 0), validation


def compilations(process: ProcessRecording, spans: Spans) -> tuple[Spans, Floats]:
    """The marks of tracing and compiling, and the seconds of each that no other around it holds already."""
    marks = spans[np.isin(spans["name"], process.of(TRACE) + process.of(COMPILE))]
    took = marks["arg"] / 1e9
    outermost_first = np.argsort(starts(marks) - took, kind="stable")
    marks, took = marks[outermost_first], took[outermost_first]
    covered = np.maximum.accumulate(np.append(-np.inf, starts(marks)))[:-1]
    return marks, np.clip(starts(marks) - np.maximum(starts(marks) - took, covered), 0, None)


def _move_compiling(process: ProcessRecording, spans: Spans, boundaries: Floats, seconds: Floats) -> Floats:
    """What was timed as the call of a compiled function, and went into compiling it, is the phase `compile`."""
    marks, took = compilations(process, spans)
    step = np.searchsorted(boundaries, starts(marks), side="right") - 1
    inside = (step >= 0) & (step < len(seconds))
    step, took = step[inside], np.minimum(took, starts(marks) - boundaries[np.clip(step, 0, None)])[inside]
    compiling = np.bincount(step, weights=took, minlength=len(seconds))
    dispatch, compile_ = (process.phase_names.index(name.name) for name in (vocabulary.DISPATCH, vocabulary.COMPILE))
    seconds[:, dispatch] = np.clip(seconds[:, dispatch] - compiling, 0, None)
    seconds[:, compile_] += compiling
    return seconds
