"""Does the step grow with the steps made, by how much, and in which phase.

Blocks of consecutive steps are compared, without those that hold an epoch's end or validation, and without the time
that the main thread was ready to run and had no core; and then with what recurs between steps, as rollouts do. The
growth must show in the whole run, in each of its halves (caches that fill, a neighbour that comes in between and
warm-up stop or jump), and in one phase more than in all the others (a machine that becomes slower, or batches that
become longer, slow everything that is computed alike; but what grows many times over takes the caches from the rest).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unstall.benchmark.phases import quickest
from unstall.benchmark.resources import growth, other_cores
from unstall.benchmark.steps import Loop
from unstall.benchmark.thresholds import (
    GOES_ON,
    IN_ALL,
    IN_HALVES,
    IN_ONE_PHASE,
    LEAST_SLOWING,
    MULTIPLIED,
    NEARLY_ALL_GROWTH,
    NEIGHBOURS,
    NO_REST,
    SLOWING_BESIDE_NEIGHBOURS,
    SLOWING_BLOCKS,
    SLOWING_STEPS,
    UNLIKE_THE_REST,
)
from unstall.records.measurements import Slowing
from unstall.records.observations import Observation, StackSample
from unstall.statistics import slope

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def slowing(loop: Loop, chosen: Bools, observation: Observation, pid: int) -> Slowing | None:
    """How the step grows; None unless it does.

    Args:
        loop: of the process.
        chosen: its measured steps.
        observation: stacks by window, and the scheduler's account of the process.
        pid: the process.
    """
    steps = np.flatnonzero(chosen & ~loop.at_boundary)
    if len(steps) >= SLOWING_STEPS:
        blocks = np.array_split(steps, SLOWING_BLOCKS)
        found = _of_blocks(loop, blocks, (np.mean, np.median, quickest), observation, pid)
        if found is not None:
            return found
    pauses = np.flatnonzero(chosen & loop.at_boundary)
    if len(pauses) < SLOWING_STEPS:
        return None
    edges = pauses[np.linspace(0, len(pauses) - 1, SLOWING_BLOCKS + 1).astype(int)]
    blocks = [begin + np.flatnonzero(chosen[begin:end]) for begin, end in itertools.pairwise(edges)]
    return _of_blocks(loop, blocks, (np.mean,), observation, pid)


def _of_blocks(
    loop: Loop,
    blocks: Sequence[npt.NDArray[np.int64]],
    typicals: Sequence[Callable[[Floats], Any]],
    observation: Observation,
    pid: int,
) -> Slowing | None:
    """How the step grows from block to block, by the first of these ways to take one as typical by which it does."""
    steps = np.concatenate(blocks)
    middle = np.array([float(block.mean()) for block in blocks])
    waited = np.array([_waited_s(loop, block, observation, pid) for block in blocks])
    for typical in typicals:
        whole = np.array([float(typical(loop.durations[block])) for block in blocks])
        without = whole - waited
        times = whole if typical is quickest else without  # the quickest did not wait
        # Where all steps did, what the waits grow by is not the program's.
        if _goes_on(middle, times) and slope(list(zip(middle, without)), IN_ALL)[1] > 0:
            break
    else:
        return None
    index = _growing_phase(loop, blocks, middle)
    rate, low, high = slope(list(zip(middle, times)))
    first_s = float(np.median(times - rate * middle))
    end_s = first_s + rate * float(steps[-1])
    # Where a step grows to many times its first, the line may begin below all of them.
    begin_s = max(first_s, float(loop.durations.min()))
    if index is None or end_s < (1 + _least_growth(loop, steps, observation)) * begin_s:
        return None
    early, late = _halves(loop, observation)
    return Slowing(
        per_1000=1000 * rate / begin_s,
        low=1000 * low / begin_s,
        high=1000 * high / begin_s,
        begin_s=begin_s,
        end_s=end_s,
        phase=loop.phase_names[index],
        early=early[1],
        late=late[1],
        early_s=max(begin_s, first_s + rate * early[0]),
        late_s=max(begin_s, first_s + rate * late[0]),
    )


def _least_growth(loop: Loop, steps: npt.NDArray[np.int64], observation: Observation) -> float:
    """Of the step over the run, that no neighbour can bring about."""
    begin, end = float(loop.starts[steps[0]]), float(loop.ends[steps[-1]])
    others = other_cores(observation.machine, observation.points, begin, end)
    return SLOWING_BESIDE_NEIGHBOURS if others >= NEIGHBOURS else LEAST_SLOWING


def _goes_on(steps: Floats, times: Floats) -> bool:
    """Whether the times grow over the whole and over each half, and hardly slower in the second."""
    half = len(steps) // 2
    _, low, _ = slope(list(zip(steps, times)), IN_ALL)
    first, first_low, _ = slope(list(zip(steps[:half], times[:half])), IN_HALVES)
    second, second_low, _ = slope(list(zip(steps[half:], times[half:])), IN_HALVES)
    return min(low, first_low, second_low) > 0 and second > GOES_ON * first


def _waited_s(loop: Loop, block: npt.NDArray[np.int64], observation: Observation, pid: int) -> float:
    """Seconds of a step in the block that the main thread waited for a core."""
    begin, end = float(loop.starts[block[0]]), float(loop.ends[block[-1]])
    waited = growth(observation.points, {pid}, begin, end, "run_delay_s")
    return min(waited / (end - begin), 1.0) * float(loop.durations[block].mean())


def _growing_phase(loop: Loop, blocks: Sequence[npt.NDArray[np.int64]], middle: Floats) -> int | None:
    """The column of the phase that grows, where it grows unlike the others."""
    seconds = np.array([loop.phases[block].mean(axis=0) for block in blocks])
    rates = np.array([slope(list(zip(middle, column)))[0] for column in seconds.T])
    index = int(np.argmax(rates))
    growth_of_all = rates.clip(0).sum()
    if rates[index] < IN_ONE_PHASE * growth_of_all:
        return None
    if rates[index] >= NEARLY_ALL_GROWTH * growth_of_all and seconds[-1].sum() >= MULTIPLIED * seconds[0].sum():
        return index  # what grows so far takes the caches from the rest, which grows with it
    mean = seconds.mean(axis=0)
    rest_s, rest_rate = mean.sum() - mean[index], rates.sum() - rates[index]
    if rest_s > NO_REST * mean.sum() and rest_rate / rest_s > UNLIKE_THE_REST * rates[index] / mean[index]:
        return None
    return index


def _halves(loop: Loop, observation: Observation) -> list[tuple[float, list[StackSample]]]:
    """Of the windows in either half of the steps: the step that they are around on average, and their stacks."""
    half = len(loop) / 2
    halves: list[tuple[float, list[StackSample]]] = []
    at_steps = [(float(np.searchsorted(loop.ends, window.middle)), window) for window in observation.windows]
    for low, high in ((0.0, half), (half, float(len(loop)))):
        inside = [(step, window) for step, window in at_steps if low <= step < high]
        samples = [sample for _, window in inside for sample in window.samples]
        halves.append((float(np.mean([step for step, _ in inside])) if inside else (low + high) / 2, samples))
    return halves
