"""What the times of whole runs say: how many times as fast the changed program is, and whether that can be trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from unstall.prove import thresholds
from unstall.prove.runner import WholeRun
from unstall.records.proof import SideFigures
from unstall.statistics import Ratio, anytime


@dataclass(frozen=True)
class ProofPair:
    """A run of the original and one of the changed program, one after the other."""

    original: WholeRun
    changed: WholeRun
    shift: int | None = None
    """The number by which the program's seeds were changed from outside; None for its own."""

    @property
    def gain_s(self) -> float:
        """Seconds that the changed program's run is shorter."""
        return self.original.seconds - self.changed.seconds


def own_pairs(pairs: Sequence[ProofPair]) -> list[ProofPair]:
    """Those under the program's own seeds."""
    return [pair for pair in pairs if pair.shift is None]


def ratio_of(pairs: Sequence[ProofPair]) -> Ratio | None:
    """How many times as fast the changed program is; None where too few pairs were run."""
    if len(pairs) < thresholds.LEAST_PAIRS:
        return None
    ratio = anytime([math.log(pair.original.seconds / pair.changed.seconds) for pair in pairs])
    return ratio if math.isfinite(ratio.high) else None


def doubt(pairs: Sequence[ProofPair], watched: Sequence[ProofPair]) -> str | None:
    """Why what was compared may not be what was timed; None where it may.

    Args:
        pairs: whole runs that nothing watches.
        watched: whole runs whose numbers were compared.
    """
    gained = gain(own_pairs(pairs))
    if gains_less_watched(pairs, watched):
        return (
            f"it gains {gained:.1f} s where nothing watches it, and {gain(watched):.1f} s where its numbers "
            "are compared: what was compared may not be what was timed"
        )
    reseeded = [pair for pair in pairs if pair.shift is not None]
    if reseeded and gain(reseeded) < thresholds.RESEEDED_SHARE * gained:
        return (
            f"it gains {gained:.1f} s under the program's own seeds, and {gain(reseeded):.1f} s under others: the "
            "gain may be that of one result only"
        )
    return None


def gains_less_watched(pairs: Sequence[ProofPair], watched: Sequence[ProofPair]) -> bool:
    """Whether watched runs gain so little that the change may do otherwise where nothing watches; few tell little."""
    return bool(watched) and gain(watched) < thresholds.WATCHED_SHARE * gain(own_pairs(pairs))


def break_even(watched: Sequence[ProofPair]) -> int | None:
    """Steps after which a slower start has paid off, by the clocks of watched runs, whose cost is the same in both.

    0 where the start is no slower; None where the steps are no faster, or were not seen.
    """
    clocks = [run.clock for pair in watched[-1:] for run in (pair.original, pair.changed)]
    if not clocks or any(not clock or len(clock["times"]) < 3 for clock in clocks):
        return None
    (start, step), (other_start, other_step) = (
        (clock["times"][0] - clock["began"], median(_gaps(clock["times"])))  # type: ignore[index]
        for clock in clocks
    )
    if other_step >= step:
        return None
    return max(0, math.ceil((other_start - start) / (step - other_step)))


def _gaps(times: Sequence[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]


def gain(pairs: Sequence[ProofPair]) -> float:
    """Seconds that a run of the changed program is shorter, median over pairs."""
    return median(pair.gain_s for pair in pairs) if pairs else 0.0


def medians(pairs: Sequence[ProofPair], of: Callable[[WholeRun], float]) -> SideFigures | None:
    """The median of a figure over the runs of each side; None where there are none."""
    if not pairs:
        return None
    original, changed = (median(map(of, runs)) for runs in zip(*((pair.original, pair.changed) for pair in pairs)))
    return SideFigures(original=original, changed=changed)
