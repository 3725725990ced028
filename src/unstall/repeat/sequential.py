"""When to stop a gate, and what it may then say. Pure statistics: log-ratios in, decision out.

A pair of runs, one of the baseline and one of the candidate, gives one value: the logarithm of the candidate's step
time over the baseline's. Pairs are looked at a few times, always with a t-test.

- After 4, 8 and 16 pairs only the plain case ends a gate: the slowdown is proven to be *more than is allowed*, or
  proven to be less.
- After 32, 64 ... and at the end a regression is *proven* when the slowdown is proven to be more than none at all and
  the best estimate is more than is allowed. It is *excluded* when the estimate is within what is allowed and twice that
  could not have hidden. Otherwise the noise was too large for so few pairs: more are run, and when there are no more,
  or no more time, the answer is "cannot tell".

The chance of a false alarm is shared out among the looks (Bonferroni), so it stays what it is however many looks there
are and whenever time ends it: half of it in equal parts to the early ones; of the other half, half to the first of the
later ones, half of the rest to the next, and what is left to the last. A look that time brings forward spends the share
of the later look that it stands for.

The t is Yuen's: of the mean without the highest and the lowest fifth of the pairs, so that a burst of load that hits
one run does not decide (Yuen, "The two-sample trimmed t for unequal population variances", Biometrika 61, 1974; for
one sample, Wilcox, "Introduction to Robust Estimation", ch. 4). On identical code the ratios are symmetric about one,
whatever the noise, so leaving out both ends favours neither side.

Sequential looks at fixed shares: Pocock, "Group sequential methods in the design and analysis of clinical trials",
Biometrika 64 (1977); spending the error: Lan and DeMets, Biometrika 70 (1983).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from unstall.repeat.thresholds import FEWEST_PAIRS, FIRST_END, FIRST_LOOK, TRIM
from unstall.statistics import Ratio, student_quantile

Decision = Literal["regression", "pass", "cannot tell", "go on"]


@dataclass(frozen=True)
class SequentialPlan:
    """What is fixed before the first run."""

    allowance: float = 0.05
    """The slowdown to tolerate: 0.05 is five per cent more time per step."""
    most: int = 128
    """Pairs of runs."""
    alarm: float = 0.01
    """The chance that identical code is called a regression."""
    miss: float = 0.05
    """The chance that a slowdown of twice the allowance is let through."""
    recorded: bool = False
    """The baseline is one recorded run, and each value is another run of the candidate over that."""

    def looks(self) -> list[int]:
        """Numbers of pairs after which clear cases end."""
        return _doubling(FIRST_LOOK, min(self.most, FIRST_END))

    def ends(self) -> list[int]:
        """Numbers of pairs after which the milder rule may decide; the last one is the end."""
        return [*_doubling(FIRST_END, self.most), self.most]

    def next_look(self, pairs: int) -> int:
        """The next number of pairs, from ``pairs`` on, at which the gate looks."""
        return next((count for count in (*self.looks(), *self.ends()) if count >= pairs), self.most)

    def end_share(self, pairs: int) -> float:
        """The part of an error's chance that the end at so many pairs may spend, or the next one if it is none."""
        ends = self.ends()
        number = min(bisect_left(ends, pairs), len(ends) - 1)
        return 0.5 ** (number + 1 if number == len(ends) - 1 else number + 2)


def _doubling(first: int, below: int) -> list[int]:
    counts = []
    while first < below:
        counts.append(first)
        first *= 2
    return counts


@dataclass(frozen=True)
class SequentialResult:
    """What the pairs so far show."""

    decision: Decision
    slowdown: Ratio | None
    """Candidate's step time over the baseline's, with the interval that the chance of a false alarm allows."""


def decide(log_ratios: Sequence[float], plan: SequentialPlan, *, last: bool) -> SequentialResult:
    """Look at the pairs so far. ``last``: no more will come, by number or by time."""
    values = np.asarray(log_ratios, float)
    looks = plan.looks()
    end = last or len(values) in plan.ends()
    undecided: Decision = "cannot tell" if last else "go on"
    if len(values) < FEWEST_PAIRS or not (end or len(values) in looks):
        return SequentialResult(undecided, None)
    share = plan.end_share(len(values)) if end else 0.5 / len(looks)
    allowed = math.log1p(plan.allowance)
    mean, error, degrees = trimmed(values, recorded=plan.recorded)
    low = mean - error * _quantile(plan.alarm * share, degrees)
    high = mean + error * _quantile(plan.miss * share, degrees)
    slowdown = Ratio(math.exp(mean), math.exp(low), math.exp(high), len(values))
    if low > allowed or (end and low > 0 and mean > allowed):
        return SequentialResult("regression", slowdown)
    if high < allowed or (end and mean <= allowed and high < math.log1p(2 * plan.allowance)):
        return SequentialResult("pass", slowdown)
    return SequentialResult(undecided, slowdown)


def trimmed(values: np.ndarray, *, recorded: bool = False) -> tuple[float, float, int]:
    """The trimmed mean, its standard error and the degrees of freedom of its t.

    ``recorded``: a single recorded baseline is itself one draw of the same noise, and the error includes that.
    """
    ordered = np.sort(values)
    n = len(ordered)
    cut = int(TRIM * n)
    middle = ordered[cut : n - cut]
    winsorised = np.clip(ordered, middle[0], middle[-1])
    error = float(winsorised.std(ddof=1)) / (1 - 2 * cut / n) / math.sqrt(n)
    return float(middle.mean()), error * math.sqrt(1 + n) if recorded else error, len(middle) - 1


@lru_cache
def _quantile(tail: float, degrees: int) -> float:
    return student_quantile(1 - tail, degrees)
