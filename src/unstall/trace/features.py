"""What a pattern gets to see: the ranks, their mean shares, the rank that sets the pace, and the replay."""

from __future__ import annotations

from functools import cached_property

from unstall.records.vocabulary import Confidence, KnownBy
from unstall.trace.metrics import TimelineMetrics
from unstall.trace.ranks import Ranks
from unstall.trace.replay.replay import Replay
from unstall.trace.thresholds import CONFIRMED_SHARE, CONFIRMS, FEWEST_EVENTS


class TraceFeatures:
    """One or several ranks of a run."""

    def __init__(self, ranks: Ranks):
        self.ranks = ranks

    @cached_property
    def metrics(self) -> TimelineMetrics:
        """Of the rank that sets the pace."""
        return self.ranks.metrics(self.ranks.pace_setter)

    @property
    def where(self) -> str:
        """The culprit's place: the main process, or the rank if there are several."""
        return "main" if len(self.ranks) < 2 else f"rank {self.ranks.name(self.ranks.pace_setter)}"

    @property
    def shares(self) -> dict[str, float]:
        """The breakdown, mean over ranks."""
        return self.ranks.shares

    @property
    def step_s(self) -> float:
        """The mean step, seconds."""
        return self.ranks.step_s

    @cached_property
    def replay(self) -> Replay:
        """Of all ranks together, else of the one that sets the pace."""
        return self.ranks.replay or self.metrics.replay

    def gain(self, what_if: str) -> float:
        """Predicted step time ratio of a what-if."""
        return self.replay.gain(what_if)

    def headroom(self, what_if: str, share: float) -> tuple[float, KnownBy]:
        """The predicted gain, or that of the share alone where the replay cannot see why the device waits.

        A device idle behind work of a CUDA graph that the profiler did not record waits for nothing in the graph of
        dependencies, so no change there ends the wait.
        """
        gain = self.gain(what_if)
        bound = 1 / max(1 - share, 0.05)
        if gain < CONFIRMS <= bound:
            return bound, "estimated"
        return gain, "predicted"

    def confidence(self, share: float, known_by: KnownBy = "predicted") -> Confidence:
        """High where a large share and a faithful replay agree over several steps."""
        if len(self.metrics.timeline.device) < FEWEST_EVENTS:
            return "low"
        if known_by == "estimated" or not self.replay.faithful:
            return "medium" if share >= CONFIRMED_SHARE else "low"
        several = len(self.metrics.windows) > 1 or len(self.ranks) > 1
        return "high" if share >= CONFIRMED_SHARE and (several or share >= 2 * CONFIRMED_SHARE) else "medium"
