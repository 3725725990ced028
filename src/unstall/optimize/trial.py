"""Compare two forms of a program: the same steps of each, in fresh processes that take turns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median, stdev
from typing import Any

from unstall.optimize.workshop import Arm, Ran, Workshop
from unstall.statistics import Ratio, ratio_of_blocks

MIN_PAIRS, MAX_PAIRS = 2, 5
_FAIR_PAIRS = 3  # with two, the interval of a 30 % gain is as wide as the gain
_HOPELESS = 1.005  # a mean ratio below this after the first pairs is not pursued,
_HOPE = 1.1  # unless one of only two shows as much as this
_START_S = 90.0  # for imports and set-up, beyond what the steps themselves should take
_PATIENCE = 4.0
_ATTEMPTS = 3  # when a run was suspended in between


class TrialFailed(Exception):
    """An arm crashed, hung, or made no steps; the message says which, in one line."""


@dataclass(frozen=True)
class Window:
    """Which steps are timed: the same in both arms, so that the same work is in them."""

    kind: str
    warmup: int
    steps: int | None
    seconds: float | None = None
    fold: int | None = None
    """Sample indices are taken modulo this, so that samples are met again soon; None: as the program has them."""
    seed: int | None = None

    def plan(self) -> dict[str, Any]:
        """For the child side."""
        plan: dict[str, Any] = {
            "clock": {"kind": self.kind, "warmup": self.warmup, "steps": self.steps, "seconds": self.seconds}
        }
        if self.fold is not None:
            plan["seed"] = {"seed": self.seed, "fold": self.fold}
        return plan


@dataclass(frozen=True)
class Timed:
    """One arm's run: its counted steps."""

    steps: int
    units: float
    seconds: float
    start_s: float
    """From process start to the first step."""
    ran: Ran = field(repr=False, compare=False)

    @property
    def unit_s(self) -> float:
        """Seconds for one unit of work (a step; a row where calls of the model are counted)."""
        return self.seconds / self.units


@dataclass
class Comparison:
    """The runs of two arms, in pairs."""

    pairs: list[tuple[Timed, Timed]] = field(default_factory=list)

    @property
    def log_ratios(self) -> list[float]:
        """Log of the speed-up of the second arm, one a pair."""
        return [math.log(a.unit_s / b.unit_s) for a, b in self.pairs]

    def ratio(self) -> Ratio:
        """The second arm's speed-up over the first."""
        return ratio_of_blocks(self.log_ratios)

    def could_be_decided(self, least: float, most_pairs: int) -> bool:
        """Whether more pairs, but no more than so many in all, would put the interval above a gain.

        If the gain is what it looks like: twice its standard error is then less than what it is beyond the least one.
        """
        if not MIN_PAIRS <= len(self.pairs) < most_pairs:
            return False
        beyond = self.ratio().value / least
        return beyond > 1 and 2 * stdev(self.log_ratios) / math.sqrt(most_pairs) < math.log(beyond)

    def unit_s(self) -> tuple[float, float]:
        """Median seconds for a unit of work, of the first arm and of the second."""
        return median(a.unit_s for a, _ in self.pairs), median(b.unit_s for _, b in self.pairs)

    def other_cores(self) -> float:
        """Cores that other programs took meanwhile, mean over the runs."""
        runs = [timed.ran.other_cores for pair in self.pairs for timed in pair]
        return sum(runs) / len(runs)


def time_arm(workshop: Workshop, arm: Arm, window: Window) -> Timed:
    """Run one arm and read its clock. Raises TrialFailed."""
    expected = (window.seconds or 20.0) * _PATIENCE
    ran = workshop.run(arm, window.plan(), timeout=_START_S + expected)
    for _ in range(_ATTEMPTS - 1):
        if ran.suspended_s:
            ran = workshop.run(arm, window.plan(), timeout=_START_S + expected)
    return timed(ran, window)


def timed(ran: Ran, window: Window) -> Timed:
    """What a run's clock says. Raises TrialFailed in one line."""
    facts = ran.json("clock.json")
    if facts is None:
        if (ran.folder / "bootstrap-error.txt").exists():
            raise TrialFailed(
                f"unstall itself failed in it: {(ran.folder / 'bootstrap-error.txt').read_text().strip()}"
            )
        if ran.timed_out:
            raise TrialFailed(f"no end after {ran.seconds:.0f} s")
        raise TrialFailed(f"ended with exit code {ran.status} before a step was done{last_line(ran.output)}")
    if not facts["stopped"] and ran.status != 0:
        raise TrialFailed(f"ended with exit code {ran.status}{last_line(ran.output)}")
    times, units = facts["times"], facts["units"]
    warmup = min(facts["warmup"], max(0, len(times) - 3))
    if len(times) - warmup < 2:
        raise TrialFailed(f"only {len(times)} steps were made")
    last = min(len(times), warmup + 1 + window.steps) if window.steps else len(times)
    return Timed(
        steps=last - 1 - warmup,
        units=sum(units[warmup + 1 : last]),
        seconds=times[last - 1] - times[warmup],
        start_s=times[0] - facts["began"],
        ran=ran,
    )


def last_line(output: str) -> str:
    """The last line a program printed, for a message."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return f": {lines[-1][:200]}" if lines else ""


def compare(
    workshop: Workshop,
    base: Arm,
    changed: Arm,
    window: Window,
    *,
    enough: Callable[[Comparison], bool],
    pairs: int = MAX_PAIRS,
    limit_s: float = math.inf,
    seen: Comparison | None = None,
) -> Comparison:
    """Run the arms in pairs, A B, B A, A B, ..., until ``enough`` says so. Raises TrialFailed for either arm.

    ``limit_s``: after this time no other pair is begun, but three are made if two do not decide. ``seen``: a comparison
    that is gone on with; ``pairs`` is of new ones.
    """
    found = Comparison(list(seen.pairs) if seen else [])
    pairs += len(found.pairs)
    began = time.monotonic()
    while len(found.pairs) < pairs:
        if len(found.pairs) % 2:
            b = time_arm(workshop, changed, window)
            a = time_arm(workshop, base, window)
        else:
            a = time_arm(workshop, base, window)
            b = time_arm(workshop, changed, window)
        found.pairs.append((a, b))
        late = len(found.pairs) >= _FAIR_PAIRS and time.monotonic() - began > limit_s
        if late or (len(found.pairs) >= MIN_PAIRS and enough(found)):
            break
    return found


def decided(least: float) -> Callable[[Comparison], bool]:
    """Stop when the interval lies on one side of the least gain worth keeping, or there is no hope of one."""

    def enough(found: Comparison) -> bool:
        ratio = found.ratio()
        unlike = len(found.pairs) < _FAIR_PAIRS and max(found.log_ratios) > math.log(_HOPE)
        hopeless = ratio.value < _HOPELESS and len(found.pairs) >= MIN_PAIRS and not unlike
        return ratio.low > least or ratio.high < least or hopeless

    return enough
