"""Compare the speed of two variants of a program: the same steps of each, in fresh processes that take turns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from statistics import median, stdev
from typing import Any

from unstall.benchmark.rundir import ERRORS_NAME
from unstall.optimize.thresholds import (
    FAIR_PAIRS,
    HOPE,
    HOPELESS,
    LEAST_PAIRS,
    MOST_PAIRS,
    START_S,
    STEPS_PATIENCE,
    TIMED_ATTEMPTS,
)
from unstall.optimize.trial_runner import TrialRun, TrialRunner, Variant
from unstall.statistics import Ratio, ratio_of_blocks


class TrialFailed(Exception):
    """A variant crashed, hung, or made no steps; the message says which, in one line."""


@dataclass(frozen=True)
class TimedWindow:
    """Which steps are timed: the same in both variants, so that the same work is in them."""

    kind: str
    warmup: int
    steps: int | None
    seconds: float | None = None
    fold: int | None = None
    """Sample indices are taken modulo this, so that samples are met again soon; None: as the program has them."""

    def plan(self) -> dict[str, Any]:
        """For the child side."""
        plan: dict[str, Any] = {
            "clock": {"kind": self.kind, "warmup": self.warmup, "steps": self.steps, "seconds": self.seconds}
        }
        if self.fold is not None:
            plan["seed"] = {"fold": self.fold}
        return plan


@dataclass(frozen=True)
class TimedRun:
    """The counted steps of one run."""

    steps: int
    units: float
    seconds: float
    run: TrialRun = field(repr=False, compare=False)

    @property
    def unit_s(self) -> float:
        """Seconds for one unit of work (a step; a row where calls of the model are counted)."""
        return self.seconds / self.units


@dataclass
class PairedRuns:
    """The runs of two variants, in pairs."""

    pairs: list[tuple[TimedRun, TimedRun]] = field(default_factory=list)

    @property
    def log_ratios(self) -> list[float]:
        """Log of the speed-up of the second variant, one for each pair."""
        return [math.log(a.unit_s / b.unit_s) for a, b in self.pairs]

    def ratio(self) -> Ratio:
        """The second variant's speed-up over the first."""
        return ratio_of_blocks(self.log_ratios)

    def could_be_decided(self, least: float, most_pairs: int) -> bool:
        """Whether more pairs, but no more than so many in all, would put the interval above a gain.

        If the gain is what it looks like: twice its standard error is then less than what it is beyond the least one.
        """
        if not LEAST_PAIRS <= len(self.pairs) < most_pairs:
            return False
        beyond = self.ratio().value / least
        return beyond > 1 and 2 * stdev(self.log_ratios) / math.sqrt(most_pairs) < math.log(beyond)

    def unit_s(self) -> tuple[float, float]:
        """Median seconds for a unit of work, of the first variant and of the second."""
        return median(a.unit_s for a, _ in self.pairs), median(b.unit_s for _, b in self.pairs)

    def later_starts_s(self) -> list[float]:
        """Seconds that each run of the second variant took more than its pair's first beyond the counted steps."""
        return [(b.run.seconds - b.seconds) - (a.run.seconds - a.seconds) for a, b in self.pairs]

    def other_cores(self) -> float:
        """Cores that other programs took meanwhile, mean over the runs."""
        runs = [timed.run.other_cores for pair in self.pairs for timed in pair]
        return sum(runs) / len(runs)


def time_variant(runner: TrialRunner, variant: Variant, window: TimedWindow, *, ordinarily: bool = False) -> TimedRun:
    """Run one variant and read its clock. Raises TrialFailed."""
    timeout = START_S + (window.seconds or 20.0) * STEPS_PATIENCE
    run = runner.run(variant, window.plan(), timeout=timeout, ordinarily=ordinarily)
    for _ in range(TIMED_ATTEMPTS - 1):
        if run.suspended_s:
            run = runner.run(variant, window.plan(), timeout=timeout, ordinarily=ordinarily)
    return timed(run, window)


def timed(run: TrialRun, window: TimedWindow) -> TimedRun:
    """What a run's clock says. Raises TrialFailed in one line."""
    facts = run.json("clock.json")
    if facts is None:
        errors = run.folder / ERRORS_NAME
        if errors.exists():
            raise TrialFailed(f"unstall itself failed in it: {errors.read_text().strip()}")
        if run.timed_out:
            raise TrialFailed(f"no end after {run.seconds:.0f} s")
        raise TrialFailed(f"ended with exit code {run.status} before a step was done{last_line(run.output)}")
    if not facts["stopped"] and run.status != 0:
        raise TrialFailed(f"ended with exit code {run.status}{last_line(run.output)}")
    times, units = facts["times"], facts["units"]
    warmup = min(facts["warmup"], max(0, len(times) - 3))
    if len(times) - warmup < 2:
        raise TrialFailed(f"only {len(times)} steps were made")
    last = min(len(times), warmup + 1 + window.steps) if window.steps else len(times)
    return TimedRun(
        steps=last - 1 - warmup,
        units=sum(units[warmup + 1 : last]),
        seconds=times[last - 1] - times[warmup],
        run=run,
    )


def last_line(output: str) -> str:
    """The last line a program printed, for a message."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return f": {lines[-1][:200]}" if lines else ""


def compare(
    runner: TrialRunner,
    base: Variant,
    changed: Variant,
    window: TimedWindow,
    *,
    enough: Callable[[PairedRuns], bool],
    pairs: int = MOST_PAIRS,
    limit_s: float = math.inf,
    earlier: PairedRuns | None = None,
    ordinarily: bool = False,
) -> PairedRuns:
    """Run two variants in pairs, A B, B A, A B, ..., until ``enough`` says so. Raises TrialFailed for either.

    ``limit_s``: after this time no other pair is begun, but three are run if two do not decide. ``earlier``: a
    comparison to continue; ``pairs`` counts the new ones. ``ordinarily``: no run is a fork.
    """
    comparison = PairedRuns(list(earlier.pairs) if earlier else [])
    pairs += len(comparison.pairs)
    began = time.monotonic()
    while len(comparison.pairs) < pairs:
        time_one = partial(time_variant, runner, window=window, ordinarily=ordinarily)
        if len(comparison.pairs) % 2:
            b = time_one(changed)
            a = time_one(base)
        else:
            a = time_one(base)
            b = time_one(changed)
        comparison.pairs.append((a, b))
        over_time = len(comparison.pairs) >= FAIR_PAIRS and time.monotonic() - began > limit_s
        if over_time or (len(comparison.pairs) >= LEAST_PAIRS and enough(comparison)):
            break
    return comparison


def interval_excludes(least: float) -> Callable[[PairedRuns], bool]:
    """Stop when the interval lies on one side of the least gain worth keeping, or there is no hope of one."""

    def enough(comparison: PairedRuns) -> bool:
        ratio = comparison.ratio()
        unlike = len(comparison.pairs) < FAIR_PAIRS and max(comparison.log_ratios) > math.log(HOPE)
        hopeless = ratio.value < HOPELESS and len(comparison.pairs) >= LEAST_PAIRS and not unlike
        return ratio.low > least or ratio.high < least or hopeless

    return enough
