"""One trial of a change: is it faster, does it compute the same, do fresh runs confirm it, does it pay soon?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import mean, median

from unstall.optimize.budget import SearchBudget
from unstall.optimize.comparison import PairedRuns, TimedWindow, TrialFailed, interval_excludes
from unstall.optimize.diagnosis import Diagnosis
from unstall.optimize.equivalence import Reference
from unstall.optimize.payback import StartCost
from unstall.optimize.proposal import Attempt, Proposal
from unstall.optimize.result import Result, SearchOptions
from unstall.optimize.thresholds import (
    CONFIRM_PAIRS,
    LARGE_GAIN,
    LEAST_GAIN,
    LEAST_TRIAL_S,
    MOST_PAIRS_IN_DOUBT,
    PLAIN_GAIN,
    TRIAL_SHARE,
)
from unstall.optimize.trial_runner import TrialNotPossible, Variant
from unstall.optimize.windows import window_of
from unstall.records.remedies import RemedyStatus


class ChangeTrials:
    """Tries changes, each against the best variant so far."""

    def __init__(
        self,
        *,
        compare: Callable[..., PairedRuns],
        reference: Reference,
        budget: SearchBudget,
        options: SearchOptions,
        log: Callable[[str], None],
    ):
        """``compare`` is that of this package, with a runner given."""
        self.compare, self.reference = compare, reference
        self.budget, self.options, self.log = budget, options, log

    def run(self, attempt: Attempt, result: Result) -> Variant | None:
        """Try one change; the changed variant if it is kept. What became of it is noted in the attempt."""
        changed = result.best.changed_by(attempt.proposal)
        so_far = f", {attempt.speedup.value:.2f}× so far: more pairs of runs" if attempt.speedup else ""
        self.log(f"trying {attempt.name} (predicted {attempt.proposal.predicted:.2f}×{so_far})")
        try:
            window = self.window(result, result.last, attempt.proposal)
            is_kept = (
                self._is_faster(attempt, changed, window, result)
                and self._is_equivalent(attempt, changed, result)
                and self._is_confirmed(attempt, changed, window, result)
                and self._pays(attempt, changed, result)
            )
        except (TrialFailed, TrialNotPossible) as error:
            attempt.end(RemedyStatus.FAILED, str(error))
            return None
        if not is_kept:
            return None
        attempt.end(RemedyStatus.KEPT)
        if attempt.sameness not in ("exact", "close"):
            self.reference.move_to(changed, attempt.observed)
        self.log(f"kept {attempt.name}: {attempt.promise:.2f}×")
        return changed

    def window(self, result: Result, state: Diagnosis, proposal: Proposal, *, all_new: bool = False) -> TimedWindow:
        """The steps that a trial of the proposal times. ``all_new``: none whose samples were met before."""
        window = window_of(
            state,
            quick=self.options.quick,
            by_call=proposal.batches_model_calls or result.batches_model_calls,
            revisits=not all_new and (proposal.needs_revisits or result.needs_revisits),
            all_new=all_new,
        )
        late = self.reference.plays_first and window.kind == state.kind
        return replace(window, kind=self.reference.kind) if late else window

    def _is_faster(self, attempt: Attempt, changed: Variant, window: TimedWindow, result: Result) -> bool:
        """Whether it is faster for certain; where more pairs of runs could decide, it is in doubt."""
        attempt.is_in_doubt = False
        trial = attempt.comparison = self.compare(
            result.best, changed, window, enough=interval_excludes(LEAST_GAIN),
            limit_s=max(LEAST_TRIAL_S, self.options.budget_s * TRIAL_SHARE), earlier=attempt.comparison,
        )  # fmt: skip
        speedup = attempt.speedup = trial.ratio()
        result.other_cores.append(trial.other_cores())
        before, after = trial.unit_s()
        self.log(f"  {before * 1e3:.3g} ms → {after * 1e3:.3g} ms a step, in {len(trial.pairs)} pairs of runs")
        if speedup.low > LEAST_GAIN:
            return True
        if speedup.value <= LEAST_GAIN:
            attempt.end(RemedyStatus.SLOWER, "no gain")
            return False
        attempt.end(RemedyStatus.INCONCLUSIVE, "the gain is not certain")
        is_worth_it = speedup.value - 1 >= self.options.worth
        attempt.is_in_doubt = is_worth_it and trial.could_be_decided(LEAST_GAIN, MOST_PAIRS_IN_DOUBT)
        return False

    def _is_equivalent(self, attempt: Attempt, changed: Variant, result: Result) -> bool:
        self.log(f"does it compute the same? {attempt.name}")
        return attempt.is_as_expected(self.reference.judge(changed, [*result.kept, attempt]))

    def _is_confirmed(self, attempt: Attempt, changed: Variant, window: TimedWindow, result: Result) -> bool:
        """Fresh pairs must show the gain again: the best of many trials looks better than it is."""
        assert attempt.comparison is not None
        if self.options.quick and not self.budget.trials_s and attempt.comparison.ratio().low > PLAIN_GAIN:
            return True
        pairs = 1 if attempt.comparison.ratio().low > LARGE_GAIN else CONFIRM_PAIRS
        fresh = self.compare(result.best, changed, window, enough=lambda trial: True, pairs=pairs)
        attempt.comparison = PairedRuns([*attempt.comparison.pairs, *fresh.pairs])
        together = attempt.speedup = attempt.comparison.ratio()
        fresh_gain = math.exp(mean(fresh.log_ratios))
        if fresh_gain < LEAST_GAIN:
            attempt.end(RemedyStatus.INCONCLUSIVE, f"the gain was not reproduced in fresh runs ({fresh_gain:.2f}×)")
        elif together.low <= 1:
            attempt.end(RemedyStatus.INCONCLUSIVE, "the gain is not certain, with fresh runs as well")
        return fresh_gain >= LEAST_GAIN and together.low > 1

    def _pays(self, attempt: Attempt, changed: Variant, result: Result) -> bool:
        """Whether it wins back soon what it costs at first: an epoch in which all samples are new, or compiling."""
        assert attempt.comparison is not None
        if attempt.proposal.compiles:
            return attempt.wins_back(_start_cost(attempt.comparison))
        if not attempt.proposal.needs_revisits:
            return True
        self.log("  what its first epoch costs")
        window = self.window(result, result.last, attempt.proposal, all_new=True)
        trial = self.compare(result.best, changed, window, enough=lambda trial: True, pairs=CONFIRM_PAIRS)
        return attempt.pays(trial.ratio().value)


def _start_cost(trial: PairedRuns) -> StartCost:
    """What compiling costs: in the first pair there is nothing compiled yet."""
    first, *later = trial.later_starts_s()
    before, after = trial.unit_s()
    return StartCost(first, median(later or [first]), before, after)
