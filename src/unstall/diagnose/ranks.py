"""What the ranks of a distributed step did themselves, and what they waited for each other."""

from __future__ import annotations

from collections.abc import Sequence

from unstall.records.measurements import RankMeasurement


def exposed_s(rank: RankMeasurement) -> float:
    """Seconds a step that a rank waits for others: its own collectives, and blocked time inside backward.

    Gradient exchange of DDP happens in backward, on other threads; what it cannot hide blocks the main thread.
    """
    return rank.phases.get("comm", 0.0) + rank.blocked.get("backward", 0.0) + rank.blocked.get("optimizer", 0.0)


def own_s(rank: RankMeasurement) -> float:
    """Seconds a step that a rank needs without waiting."""
    return max(0.0, rank.step_s - exposed_s(rank))


def spread(ranks: Sequence[RankMeasurement]) -> float:
    """Difference between the longest and the shortest wait: none when all wait for the network alike."""
    waits = [exposed_s(rank) for rank in ranks]
    return max(waits) - min(waits)
