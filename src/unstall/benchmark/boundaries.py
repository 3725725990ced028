"""Which calls of a loop count its steps: where one ends and the next begins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unstall.benchmark.reader import ProcessRecording, Spans, ends, starts
from unstall.benchmark.thresholds import (
    ENV_STEPS,
    FILLS_A_BUFFER,
    MAIN_LOOP,
    ONCE_MORE,
    RELAY_CALLS,
    RELAY_SUBJECTS,
    SAME_LOOP,
    SAME_LOOP_CALLS,
    TAKES_TURNS,
    TURNS,
)
from unstall.child.layout import ERROR, MODULE
from unstall.child.seams.loader import EPOCH
from unstall.records.vocabulary import Tick

Floats = npt.NDArray[np.float64]


def counting(process: ProcessRecording, spans: Spans, kind: Tick) -> Spans:
    """The calls, those of submodules left out, that count as this kind."""
    return spans[np.isin(spans["name"], process.counting(kind)) & (spans["flags"] & MODULE == 0)]


def epochs_of(process: ProcessRecording, spans: Spans) -> Spans:
    """The calls with which loaders begin an epoch."""
    return spans[np.isin(spans["name"], process.of(EPOCH))]


def boundaries_of(process: ProcessRecording, spans: Spans, only: str | None) -> tuple[str, Floats]:
    """The kind of step, and the times where one step ends and the next begins."""
    explicit = counting(process, spans, Tick.EXPLICIT)
    optimizer = primary(counting(process, spans, Tick.OPTIMIZER))
    forwards = primary(of_models(process, counting(process, spans, Tick.FORWARD)))
    env_steps = counting(process, spans, Tick.ENV)
    backwards = counting(process, spans, Tick.BACKWARD)
    requests = counting(process, spans, Tick.REQUEST)
    fetches = counting(process, spans, Tick.DATA)
    batches = fetches[fetches["flags"] & ERROR == 0]
    with_forward = _batches_with_forward(batches, forwards)
    # In this order; the last two stand for loops that the first seven leave out.
    candidates: list[tuple[str, bool, Callable[[], Floats]]] = [
        ("explicit", len(explicit) >= 2, lambda: starts(explicit)),
        (
            "env",
            len(env_steps) >= max(2, ENV_STEPS * len(optimizer)),
            lambda: _since_learning(starts(env_steps), optimizer),
        ),
        (
            "optimizer",
            len(optimizer) >= 2 and _covers(optimizer, forwards),
            lambda: _after_update(optimizer, fetches),
        ),
        (
            "backward",
            not len(optimizer) and _updates_by_hand(backwards, forwards),
            lambda: _after_update(backwards, fetches),
        ),
        ("request", len(requests) >= 2, lambda: starts(requests)),
        ("batch", len(with_forward) >= 2 and _covers(with_forward, forwards), lambda: starts(with_forward)),
        ("forward", len(forwards) >= 2, lambda: starts(forwards)),
        ("optimizer", len(optimizer) >= 2, lambda: _after_update(optimizer, batches)),
        ("batch", True, lambda: starts(batches)),
    ]
    for kind, applies, boundaries in candidates:
        if applies and only in (None, kind):
            return kind, boundaries()
    return "batch", starts(batches[:0])


def _since_learning(env_steps: Floats, updates: Spans) -> Floats:
    """The steps of an environment from the one with the first update on, where a replay buffer was filled before that.

    More was played then than ever between two updates, and in less time than all that follows. A rollout, from which an
    agent learns and which it makes again and again, is of the loop.
    """
    played = np.searchsorted(env_steps, starts(updates))
    first = max(0, int(played[0]) - 1) if len(played) else 0
    if first <= FILLS_A_BUFFER * np.diff(played).max(initial=1) or len(env_steps) - first < SAME_LOOP_CALLS:
        return env_steps
    is_short = env_steps[first] - env_steps[0] < env_steps[-1] - env_steps[first]
    return env_steps[first:] if is_short else env_steps


def of_models(process: ProcessRecording, forwards: Spans) -> Spans:
    """Calls of modules with parameters, if there are any: a loss module or a transform is not the model."""
    models = [int(fact["id"]) for fact in process.facts.get("root", []) if fact.get("parameters")]
    chosen = forwards[np.isin(forwards["arg"], np.array(models, dtype=np.uint64))]
    return chosen if len(chosen) else forwards


def primary(spans: Spans) -> Spans:
    """The spans of the subject (optimizer, root module) that took the most time, if there are several.

    A program of several models or optimizers takes turns; one of them counts the steps. Those that come one after the
    other, each as fast as the one before, are the same loop again: a training for each fold of the data, say.
    """
    return spans[_of_main_loop(spans)]


def other_loops(process: ProcessRecording, spans: Spans) -> list[tuple[float, float]]:
    """When other loops train between two steps of the main one: those of other models of a sweep, say.

    From the first update to the last of each stretch in which another optimizer makes as many as tell a loop. Where it
    comes again and again, as that of the values of an agent does after each rollout, it is of the main loop.
    """
    updates = counting(process, spans, Tick.OPTIMIZER)
    is_main = _of_main_loop(updates)
    began, others = starts(updates[is_main]), updates[~is_main]
    found = []
    for subject in np.unique(others["arg"]):
        own = others[others["arg"] == subject]
        after = np.searchsorted(began, starts(own))
        long = np.flatnonzero(np.bincount(after) >= SAME_LOOP_CALLS)
        if len(np.unique(after)) <= ONCE_MORE:
            stretches = [own[after == step] for step in long]
            found += [(float(starts(stretch)[0]), float(ends(stretch).max())) for stretch in stretches]
    return found


def earlier_training(process: ProcessRecording, spans: Spans, before: float) -> float:
    """When the last training that is none of the main loop ended, before this time; minus infinity without any."""
    updates = counting(process, spans, Tick.OPTIMIZER)
    ended = ends(updates[~_of_main_loop(updates)])
    return float(ended[ended < before].max(initial=-np.inf))


def _of_main_loop(spans: Spans) -> npt.NDArray[np.bool_]:
    subjects, inverse = np.unique(spans["arg"], return_inverse=True)
    if len(subjects) < 2:
        return np.ones(len(spans), dtype=bool)
    total = np.bincount(inverse, weights=spans["dur"].astype(np.float64))
    count = np.bincount(inverse)
    total[count < TAKES_TURNS * count.max()] = 0
    chosen = int(np.argmax(total))
    of_subject = _by_subject(inverse, np.arange(len(spans)), count)
    same = of_subject.pop(chosen)
    again = _again(spans[same], [spans[places] for places in of_subject])
    chosen_spans = np.zeros(len(spans), dtype=bool)
    chosen_spans[np.concatenate([same, *(of_subject[number] for number in again)])] = True
    return chosen_spans | np.isin(inverse, _in_relay(spans, inverse, chosen))


def _in_relay(spans: Spans, inverse: npt.NDArray[np.intp], chosen: int) -> list[int]:
    """The subjects of a relay that the chosen one is in: several, each of which makes some calls before the next does.

    Each as fast as the chosen one: the clients of federated learning, the members of an ensemble. Two may be the parts
    of one step, such as a critic that learns several times for each time that the generator does.
    """
    goes_on = np.flatnonzero(inverse[1:] == inverse[:-1])
    count, going_on = np.bincount(inverse), np.bincount(inverse[goes_on], minlength=inverse.max() + 1)
    lengths = _by_subject(inverse, spans["dur"] / 1e9, count)
    gaps = _by_subject(inverse[goes_on], np.diff(starts(spans))[goes_on], going_on)
    paces = {
        int(subject): _pace(lengths[subject], gaps[subject])
        for subject in np.flatnonzero(count >= RELAY_CALLS * (count - going_on))
    }
    if chosen not in paces:
        return []
    alike = [subject for subject, pace in paces.items() if _is_alike(pace, paces[chosen])]
    return alike if len(alike) >= RELAY_SUBJECTS else []


def _by_subject(
    inverse: npt.NDArray[np.intp], values: npt.NDArray[Any], count: npt.NDArray[np.intp]
) -> list[npt.NDArray[Any]]:
    """The values of each subject, of so many each."""
    return np.split(values[np.argsort(inverse, kind="stable")], np.cumsum(count)[:-1])


def _again(first: Spans, others: Sequence[Spans]) -> Iterator[int]:
    """Which of the others, the spans of one subject each, are the loop of the first again."""
    began, pace = starts(first), _pace_of(first)
    for number, other in enumerate(others):
        if len(other) < SAME_LOOP_CALLS or in_turn(began, starts(other)):
            continue
        if _is_alike(_pace_of(other), pace):
            began = np.sort(np.concatenate([began, starts(other)]))
            yield number


def in_turn(one: Floats, other: Floats) -> bool:
    """Whether the calls of one subject and those of another, by their sorted starts, follow each other again and again.

    A subject is told by its address, which another may have once it is gone: those of two folds may be one, with a
    third between.
    """
    turns = 2 * len(np.unique(np.searchsorted(one, other)))
    return turns > TURNS * min(len(one), len(other))


def _pace_of(spans: Spans) -> Floats:
    return _pace(spans["dur"] / 1e9, np.diff(starts(spans)))


def _pace(lengths: Floats, between: Floats) -> Floats:
    """Seconds of a call, and from one to the next, in the median."""
    return np.maximum([np.median(lengths), np.median(between) if len(between) else 0.0], 1e-9)


def _is_alike(one: Floats, other: Floats) -> bool:
    """Whether two loops of these paces are as fast as each other."""
    return bool(np.abs(np.log(one / other)).max() <= math.log(SAME_LOOP))


def _covers(steps: Spans, forwards: Spans) -> bool:
    """Whether these span enough of the time in which the program runs its model to be its main loop."""
    if len(forwards) < 2:
        return True
    began, ended = (
        min(starts(forwards)[0], starts(steps)[0]),
        max(ends(forwards)[-1], ends(steps)[-1]),
    )
    return bool(ends(steps)[-1] - starts(steps)[0] >= MAIN_LOOP * (ended - began))


def _updates_by_hand(backwards: Spans, forwards: Spans) -> bool:
    """Whether a program without an optimizer trains, its weights bare tensors where it calls no model."""
    if not len(forwards):
        return len(backwards) >= 2
    return 2 <= len(backwards) <= len(forwards) and _covers(backwards, forwards)


def _after_update(updates: Spans, batches: Spans) -> Floats:
    """A step ends where the next batch is asked for after the weights' update, or where that ends."""
    stepped = np.maximum.accumulate(ends(updates))  # an optimizer may step another inside its own step
    requests = starts(batches)
    if not len(requests):
        return stepped
    following = np.searchsorted(requests, stepped)
    next_start = np.append(starts(updates)[1:], np.inf)
    has_batch = following < len(requests)
    candidate = requests[np.minimum(following, len(requests) - 1)]
    first = requests[max(int(np.searchsorted(requests, starts(updates)[0])) - 1, 0)]
    boundaries = np.where(has_batch & (candidate < next_start), candidate, stepped)
    return np.append(first, boundaries) if first < boundaries[0] else boundaries


def _batches_with_forward(batches: Spans, forwards: Spans) -> Spans:
    if not len(batches) or not len(forwards):
        return batches[:0]
    requests = np.append(starts(batches), np.inf)
    holder = np.searchsorted(requests, starts(forwards), side="right") - 1
    used = np.zeros(len(batches), dtype=bool)
    used[holder[(holder >= 0) & (holder < len(batches))]] = True
    return batches[used]
