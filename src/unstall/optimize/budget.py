"""The time that a search may take: what is left of it, and whether another trial fits in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import mean

from unstall.optimize.thresholds import LEAST_RUNS, LEAST_TRIAL_S, MOST_RESERVE_S, RESERVE_SHARE


class SearchBudget:
    """A number of seconds from now on. ``clock`` gives seconds, those left out in which the machine was suspended."""

    def __init__(self, total_s: float, clock: Callable[[], float], *, has_last_comparison: bool = True):
        self.total_s, self.clock = total_s, clock
        self.has_last_comparison = has_last_comparison
        self.began = clock()
        self.trials_s: list[float] = []
        self.diagnosis_s = 0.0
        """What a diagnosis takes, as the first one did."""
        self.run_s = 0.0
        """What a run takes at least, as those of the reference did."""

    @property
    def spent_s(self) -> float:
        """Seconds since the beginning."""
        return self.clock() - self.began

    @property
    def reserve_s(self) -> float:
        """Seconds set aside for the last comparison."""
        return min(RESERVE_SHARE * self.total_s, MOST_RESERVE_S) if self.has_last_comparison else 0.0

    @property
    def remaining_s(self) -> float:
        """Seconds that are left for trials."""
        return self.total_s - self.reserve_s - self.spent_s

    @property
    def trial_s(self) -> float:
        """What a trial takes, by those before it; the first one, at least."""
        return mean(self.trials_s) if self.trials_s else LEAST_RUNS * self.run_s

    def diagnosed(self) -> None:
        """The first diagnosis has just ended: each later one is taken to be as long."""
        self.diagnosis_s = self.spent_s

    @contextmanager
    def reference(self, runs: int) -> Iterator[None]:
        """Note how long each of the runs in the ``with`` block takes."""
        began = self.spent_s
        yield
        self.run_s = (self.spent_s - began) / runs

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Note how long the trial in the ``with`` block takes."""
        began = self.spent_s
        yield
        self.trials_s.append(self.spent_s - began)

    def allows_trial(self) -> bool:
        """Whether a trial that keeps its change would end in time."""
        return self.remaining_s > self.trial_s

    def allows_only_trial(self) -> bool:
        """Whether the first trial would end in time if it is the last comparison as well."""
        return not self.trials_s and self.remaining_s + self.reserve_s > self.trial_s

    def allows_measuring(self, *, has_kept: bool) -> bool:
        """Whether there is time to measure what a change would bring. ``has_kept``: the last comparison is to come."""
        left_s = self.remaining_s + (0.0 if has_kept else self.reserve_s)
        return left_s > min(self.trial_s, max(LEAST_TRIAL_S, LEAST_RUNS * self.run_s))

    @property
    def is_spent(self) -> bool:
        """Whether there is no time to diagnose the program again, and so for no other trial."""
        return self.remaining_s <= self.diagnosis_s
