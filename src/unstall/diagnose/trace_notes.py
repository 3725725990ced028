"""What makes the reading of a trace less sure, one line each."""

from __future__ import annotations

from collections import Counter

from unstall.diagnose.thresholds import COLD, STEP_VARIATION, TRACED_STEPS, UNLAUNCHED
from unstall.text.units import percent
from unstall.trace.features import TraceFeatures
from unstall.trace.phrases import counted
from unstall.trace.ranks import Ranks
from unstall.trace.timeline import problem_lines

_MOST_RANKS = 8


def notes(device: TraceFeatures) -> list[str]:
    """Of the files, the predictions, the steps, and the recording."""
    return [
        *_absent(device),
        *_predictions(device),
        *_steps(device),
        *problem_lines(unread(device.ranks)),
        *_recording(device),
    ]


def unread(ranks: Ranks) -> dict[str, int]:
    """What could not be read of all files, and how often."""
    total: dict[str, int] = {}
    for summary in ranks.summaries:
        for what, count in summary.problems.items():
            total[what] = total.get(what, 0) + count
    return total


def _predictions(device: TraceFeatures) -> list[str]:
    replay = device.replay
    lines = []
    if not replay.faithful:
        lines.append(f"the replayed step is {percent(abs(replay.error))} off: predicted gains are rough")
    if replay.partial:
        lines.append(f"predicted from {replay.steps} of {replay.of} steps, those nearest to the mean")
    return lines


def _steps(device: TraceFeatures) -> list[str]:
    metrics = device.metrics
    lines = []
    if not metrics.windows.marked:
        lines.append("no steps are marked: the whole trace counts as one (call profiler.step() in the loop)")
    elif len(metrics.windows) < TRACED_STEPS:
        lines.append(f"only {'two steps were' if len(metrics.windows) > 1 else 'one step was'} recorded")
    if metrics.step_variation > STEP_VARIATION:
        lines.append(f"steps vary by {percent(metrics.step_variation)} (standard deviation)")
    return lines


def _recording(device: TraceFeatures) -> list[str]:
    metrics = device.metrics
    lines = []
    cold = metrics.queue.cold_rows
    if len(cold) and metrics.shares["idle_cold"] > COLD:
        loaded = counted(len(cold), "kernel was loaded", "kernels were loaded")
        share = percent(metrics.shares["idle_cold"])
        lines.append(f"{loaded} for the first time, {share} of a step: a cold start, record after warm-up")
    unlaunched = float((metrics.timeline.launch < 0).mean())
    if unlaunched > UNLAUNCHED:
        lines.append(f"{percent(unlaunched)} of the device's work has no launch call in the trace")
    return lines


def _absent(device: TraceFeatures) -> list[str]:
    """Ranks that were not given, or twice: who waits for whom is known of those at hand alone."""
    ranks = [summary.rank for summary in device.ranks.summaries]
    world = max((summary.world_size or 1) for summary in device.ranks.summaries)
    if len(ranks) == 1 and world > 1:
        return [f"one of {world} ranks: give all their files to see who waits for whom"]
    lines = []
    known = Counter(rank for rank in ranks if rank is not None)
    if len(known) > 1:
        expected = range(world) if world > 1 else range(min(known), max(known) + 1)
        lines += _missing(sorted(set(expected) - set(known)), len(expected))
    if twice := [rank for rank, count in known.items() if count > 1]:
        lines.append(f"several files say that they are rank {twice[0]}: give one of each rank, of the same steps")
    return lines


def _missing(ranks: list[int], of: int) -> list[str]:
    if not ranks:
        return []
    named = ", ".join(map(str, ranks[:_MOST_RANKS])) + (", …" if len(ranks) > _MOST_RANKS else "")
    verb = "is" if len(ranks) == 1 else "are"
    return [f"{len(ranks)} of {of} ranks {verb} missing ({named}): waiting for them looks like slow communication"]
