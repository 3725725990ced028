"""The time that a search may take: what is left of it, and whether another trial fits in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import mean

_RESERVE_SHARE, _MAX_RESERVE_S = 0.25, 120.0  # set aside for the last comparison


class Budget:
    """A number of seconds from now on. ``clock`` gives seconds, those left out in which the machine was suspended."""

    def __init__(self, total_s: float, clock: Callable[[], float]):
        self.total_s, self.clock = total_s, clock
        self.began = clock()
        self.trials_s: list[float] = []
        self.diagnosis_s = 0.0
        """What a diagnosis takes, as the first one did."""

    @property
    def spent_s(self) -> float:
        """Seconds since the beginning."""
        return self.clock() - self.began

    @property
    def reserve_s(self) -> float:
        """Seconds set aside for the last comparison."""
        return min(_RESERVE_SHARE * self.total_s, _MAX_RESERVE_S)

    def diagnosed(self) -> None:
        """The first diagnosis has just ended: each later one is taken to be as long."""
        self.diagnosis_s = self.spent_s

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Note how long the trial in the ``with`` block takes."""
        began = self.spent_s
        yield
        self.trials_s.append(self.spent_s - began)

    def allows_trial(self) -> bool:
        """Whether a trial and the diagnosis after it will end in time, by what those before it took.

        The first one is begun in any case while time is left: without it nothing was tried.
        """
        next_s = mean(self.trials_s) + self.diagnosis_s if self.trials_s else 0.0
        return self.total_s - self.reserve_s - self.spent_s > next_s
