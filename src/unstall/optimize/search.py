"""The search: diagnose, try what promises most, keep what is faster and computes the same, diagnose again."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from unstall.optimize import comparison, diagnosis
from unstall.optimize.budget import SearchBudget
from unstall.optimize.comparison import PairedRuns, TimedWindow, TrialFailed, interval_excludes
from unstall.optimize.diagnosis import Diagnosis
from unstall.optimize.equivalence import Reference, observe
from unstall.optimize.program import Program
from unstall.optimize.proposal import Attempt, Proposal
from unstall.optimize.remedies import all_remedies
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.result import Result, SearchOptions
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import (
    AGENT_LEAST_S,
    CONFIRM_PAIRS,
    DIAGNOSIS_S,
    LARGE_GAIN,
    LEAST_GAIN,
    LEAST_TOTAL_PAIRS,
    LEAST_TRIAL_S,
    MOST_FAILURES,
    MOST_PAIRS_IN_DOUBT,
    MOST_STEPS,
    NARROW,
    PLAIN_GAIN,
    QUICK_DIAGNOSIS_S,
    TOTAL_CHANGED_S,
    TOTAL_ORIGINAL_S,
    TOTAL_PAIRS,
    TOTAL_SHARE,
    TRIAL_SHARE,
)
from unstall.optimize.trial_runner import TrialNotPossible, TrialRunner, Trials, Variant
from unstall.optimize.windows import steps_to_compare, window_of
from unstall.records.remedies import RemedyStatus
from unstall.text.units import percent

if TYPE_CHECKING:
    from unstall.optimize.agent import Agent

_CHANGES = {"output-changing": "what is written", "reduced": "results", "training-changing": "the training"}
"""What remedies change that are expected to compute something else."""


def search(
    program: Program, trials: Trials, options: SearchOptions, log: Callable[[str], None], agent: Agent | None = None
) -> Result:
    """Search over one program with real trials. Raises TrialFailed when the original fails."""
    seconds = QUICK_DIAGNOSIS_S if options.quick else DIAGNOSIS_S
    return Search(
        diagnose=partial(trials.do, diagnosis.diagnose, program, seconds=seconds),
        compare=partial(trials.do, comparison.compare),
        reference=Reference(partial(trials.do, observe), distrust_forks=partial(trials.do, TrialRunner.stop_forking)),
        remedies=all_remedies(),
        clock=lambda: time.monotonic() - trials.suspended_s,
        options=options,
        log=log,
        agent=agent,
    ).run()


class Search:
    """One search over one program. All that it does to the world, it does by the functions that it is given."""

    def __init__(
        self,
        *,
        diagnose: Callable[[Variant], Diagnosis],
        compare: Callable[..., PairedRuns],
        reference: Reference,
        remedies: Mapping[str, Remedy],
        clock: Callable[[], float],
        options: SearchOptions,
        log: Callable[[str], None],
        agent: Agent | None = None,
    ):
        """``diagnose``, ``compare`` and ``reference``'s are those of this package, with a runner given."""
        self.agent = agent
        self.diagnose, self.compare, self.reference = diagnose, compare, reference
        self.remedies, self.options, self.log = remedies, options, log
        self.budget = SearchBudget(options.budget_s, clock, has_last_comparison=not options.quick)
        self.candidates: list[Attempt] = []
        """What the remedies propose for the best variant so far."""
        self.settled: dict[tuple[str, str], Attempt] = {}
        """What is not tried again under the present conditions."""
        self.failures: dict[str, int] = {}
        """Trials of each remedy that ended with an error."""
        self.out_of_budget = ""
        """Why no other trial was begun, where the budget is the reason."""

    def run(self) -> Result:
        """Search until nothing promising is left or the budget is spent. Raises TrialFailed when the original fails."""
        self.log("diagnosing the program as it is")
        first = self.diagnose(Variant())
        self.budget.diagnosed()
        result = Result(first, first)
        self.log("what the original computes, twice")
        with self.budget.reference(runs=2):
            steps = steps_to_compare(first, quick=self.options.quick, by_anybody=self.agent is not None)
            self.reference.observe(first.kind, steps=steps, trains=first.trains)
        result.reproducible = self.reference.is_reproducible
        try:
            self._improve(result)
            if not self.options.quick:
                self._measure_advice(result)
            if result.kept and result.total is None:
                self.log("the original and the changed program side by side")
                self._compare_with_original(result)
        except KeyboardInterrupt:
            result.stopped_by = "interrupted"
            for attempt in result.attempts:
                if attempt.status is RemedyStatus.UNTRIED:
                    attempt.end(RemedyStatus.UNTRIED, "not tried to the end: the search was interrupted")
        self._add_untried(result)
        return result

    def _improve(self, result: Result) -> None:
        self._propose(result)
        while True:
            worthy = [attempt for attempt in self.candidates if self._is_open(attempt) and self._is_worthy(attempt)]
            if not worthy and self.agent is None:
                return
            if not self._has_time():
                result.stopped_by = "budget"
                return
            worthy = worthy or self._ask_agent(result)
            if not worthy:
                return
            attempt = max(worthy, key=lambda attempt: self._rank(attempt, result.last))
            with self.budget.trial():
                changed = self._try(attempt, result)
            if changed is not None:
                result.best = changed
                if self.options.quick:
                    result.total, result.stopped_by = attempt.speedup, "first kept"
                    return
                if self.budget.is_spent:
                    self.out_of_budget, result.stopped_by = "the budget is spent", "budget"
                    if len(result.kept) == 1:
                        result.total = attempt.speedup  # its fresh pairs are the last comparison
                    return
                self.settled = {
                    id: settled for id, settled in self.settled.items()
                    if settled is attempt or not settled.proposal.competes_for_cores
                }  # fmt: skip
                self.log("diagnosing again")
                result.last = self.diagnose(changed)
                self._propose(result)

    def _ask_agent(self, result: Result) -> list[Attempt]:
        """The next change of the agent's, as no remedy is left that is worth a trial."""
        if self.agent is None or not self.agent.is_worth_asking(result, self.options.worth):
            return []
        attempt = self.agent.ask(result, max(AGENT_LEAST_S, self.budget.remaining_s - self.budget.trial_s))
        if attempt is None or not self._is_open(attempt):
            return []
        self.candidates.append(attempt)
        return [attempt]

    def _measure_advice(self, result: Result) -> None:
        """Measure what the changes would bring that are not allowed, while there is time."""
        for attempt in self.candidates:
            in_time = self.budget.allows_measuring(has_kept=bool(result.kept))
            if self._is_forbidden(attempt) and self._is_worthy(attempt) and in_time:
                self.log(f"what would it bring? {attempt.name}")
                with self.budget.trial():
                    self._measure_gain(attempt, result)

    def _measure_gain(self, attempt: Attempt, result: Result) -> None:
        changed = result.best.changed_by(attempt.proposal)
        window = self._window(result, result.last, attempt.proposal)
        try:
            trial = self.compare(
                result.best, changed, window, enough=interval_excludes(LEAST_GAIN), limit_s=LEAST_TRIAL_S
            )
        except (TrialFailed, TrialNotPossible) as error:
            attempt.end(RemedyStatus.ADVICE, f"its trial failed: {error}")
            return
        speedup = attempt.speedup = trial.ratio()
        gain = f"would bring {speedup.value:.2f}×" if speedup.low > LEAST_GAIN else "no certain gain"
        attempt.end(RemedyStatus.ADVICE, f"{gain}; {_changes(attempt.remedy)}")

    def _has_time(self) -> bool:
        """Whether another trial may be begun; in a quick search the first one is in any case.

        The first one may take what is set aside for the last comparison: in a program that takes long to start there is
        no time for both, and the first is of the change that promises the most.
        """
        budget = self.budget
        if budget.allows_trial() or budget.allows_only_trial() or (self.options.quick and not budget.trials_s):
            return True
        left_s = max(0.0, budget.remaining_s)
        self.out_of_budget = f"a trial takes {budget.trial_s:.0f} s, and {left_s:.0f} s of the budget are left for it"
        return False

    # ------------------------------------------------------------------ what to try

    def _propose(self, result: Result) -> None:
        """Ask every remedy what it proposes for the best variant so far; what was inconclusive begins anew."""
        self.candidates, result.notes, result.inapplicable = [], [], []
        pattern = result.last.report.verdict.pattern
        for remedy in self.remedies.values():
            try:
                proposals = remedy.propose(result.last.context)
            except NotApplicable as reason:
                result.notes.append(f"{remedy.name}: {reason}")
                if pattern in remedy.patterns:
                    result.inapplicable.append(result.notes[-1])
            except Exception as error:  # whatever is wrong with one remedy, the others go on
                result.notes.append(f"{remedy.name}: it failed, please report this: {_failure(error)}")
            else:
                self.candidates += [self._attempt(remedy, proposal) for proposal in proposals]

    def _attempt(self, remedy: Remedy, proposal: Proposal) -> Attempt:
        attempt = Attempt(remedy, proposal)
        if proposal.advice_only:
            attempt.end(RemedyStatus.ADVICE, f"advice: {proposal.because}")
        elif self._is_forbidden(attempt):
            attempt.end(RemedyStatus.ADVICE, f"{_changes(remedy)} ({proposal.because})")
        return attempt

    def _is_forbidden(self, attempt: Attempt) -> bool:
        """Whether it may be kept only with ``--allow``."""
        exactness = attempt.remedy.exactness
        return exactness in _CHANGES and exactness not in self.options.allow and not attempt.proposal.advice_only

    def _rank(self, attempt: Attempt, state: Diagnosis) -> tuple[bool, bool, bool, float]:
        """An exact cure of the culprit's own line goes first, one that pays in the first epoch before a cache.

        Then one of a line that leads there. But not before one that is as good as exact and promises far more: what
        the first one leaves there may be nothing that the other can work on.
        """
        lines, culprit = attempt.proposal.lines, state.report.verdict.culprit
        if attempt.speedup or lines is None or culprit is None or attempt.remedy.exactness != "exact":
            return False, False, False, _promise(attempt)
        owned = state.context.user_file
        promise, place = _promise(attempt), (owned(culprit.file), culprit.line)
        cures = lines.hold(*place) and not any(
            other.remedy.exactness == "close" and other.proposal.lines is not None and other.proposal.lines.hold(*place)
            and self._is_open(other) and _promise(other) > promise**2
            for other in self.candidates
        )  # fmt: skip
        leads = any(lines.hold(owned(caller.file), caller.line) for caller in culprit.callers)
        return cures, cures and not attempt.proposal.needs_revisits, leads, promise

    def _is_open(self, attempt: Attempt) -> bool:
        failed = self.failures.get(attempt.remedy.name, 0) > MOST_FAILURES
        return attempt.status is not RemedyStatus.ADVICE and attempt.id not in self.settled and not failed

    def _is_worthy(self, attempt: Attempt) -> bool:
        return attempt.proposal.predicted - 1 >= self.options.worth

    def _add_untried(self, result: Result) -> None:
        """Add to the result what was not tried, with the reason, and then the advice."""
        tried = {attempt.id for attempt in result.attempts}
        for attempt in self.candidates:
            if self._is_open(attempt) and attempt.id not in tried:
                status, reason = RemedyStatus.BELOW_WORTH, f"predicted gain below {percent(self.options.worth)}"
                if self._is_worthy(attempt):
                    status = RemedyStatus.UNTRIED
                    reason = {
                        "budget": self.out_of_budget,
                        "first kept": "the search stopped with the first change kept",
                    }.get(result.stopped_by, "the search was interrupted")
                attempt.end(status, f"not tried: {reason} ({attempt.proposal.because})")
                result.attempts.append(attempt)
        result.attempts += [attempt for attempt in self.candidates if attempt.status is RemedyStatus.ADVICE]

    # ------------------------------------------------------------------ one trial

    def _try(self, attempt: Attempt, result: Result) -> Variant | None:
        """Try one change against the best variant so far; the changed variant if the change is kept."""
        changed = result.best.changed_by(attempt.proposal)
        so_far = f", {attempt.speedup.value:.2f}× so far: more pairs of runs" if attempt.speedup else ""
        self.log(f"trying {attempt.name} (predicted {attempt.proposal.predicted:.2f}×{so_far})")
        result.add(attempt)
        self.settled[attempt.id] = attempt
        try:
            window = self._window(result, result.last, attempt.proposal)
            is_kept = (
                self._is_faster(attempt, changed, window, result)
                and self._is_equivalent(attempt, changed, result)
                and self._is_confirmed(attempt, changed, window, result)
                and self._pays(attempt, changed, result)
            )
        except (TrialFailed, TrialNotPossible) as error:
            self.failures[attempt.remedy.name] = self.failures.get(attempt.remedy.name, 0) + 1
            attempt.end(RemedyStatus.FAILED, str(error))
            return None
        if not is_kept:
            return None
        attempt.end(RemedyStatus.KEPT)
        if attempt.sameness not in ("exact", "close"):
            self.reference.move_to(changed, attempt.observed)
        self.log(f"kept {attempt.name}: {_promise(attempt):.2f}×")
        return changed

    def _is_faster(self, attempt: Attempt, changed: Variant, window: TimedWindow, result: Result) -> bool:
        """Whether it is faster for certain; where more pairs of runs could decide, it may be tried again."""
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
        if speedup.value - 1 >= self.options.worth and trial.could_be_decided(LEAST_GAIN, MOST_PAIRS_IN_DOUBT):
            del self.settled[attempt.id]
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
        together = attempt.speedup = PairedRuns([*attempt.comparison.pairs, *fresh.pairs]).ratio()
        fresh_gain = math.exp(mean(fresh.log_ratios))
        if fresh_gain < LEAST_GAIN:
            attempt.end(RemedyStatus.INCONCLUSIVE, f"the gain was not reproduced in fresh runs ({fresh_gain:.2f}×)")
        elif together.low <= 1:
            attempt.end(RemedyStatus.INCONCLUSIVE, "the gain is not certain, with fresh runs as well")
        return fresh_gain >= LEAST_GAIN and together.low > 1

    def _pays(self, attempt: Attempt, changed: Variant, result: Result) -> bool:
        """Whether what keeps samples wins back soon what its first epoch costs, in which all are new."""
        if not attempt.proposal.needs_revisits:
            return True
        self.log("  what its first epoch costs")
        window = self._window(result, result.last, attempt.proposal, all_new=True)
        trial = self.compare(result.best, changed, window, enough=lambda trial: True, pairs=CONFIRM_PAIRS)
        return attempt.pays(trial.ratio().value)

    def _window(self, result: Result, state: Diagnosis, proposal: Proposal, *, all_new: bool = False) -> TimedWindow:
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

    # ------------------------------------------------------------------ the last comparison

    def _compare_with_original(self, result: Result) -> None:
        """The original and the changed program in turns, each a process of its own, with nothing but a clock in it."""
        window = self._window(result, result.first, result.kept[0].proposal)
        if window.steps is not None:
            original_s = min(TOTAL_ORIGINAL_S, self.budget.reserve_s * TOTAL_SHARE)
            longest = max(window.steps, int(original_s / result.first.step_s))
            steps = min(max(window.steps, int(TOTAL_CHANGED_S / result.last.step_s)), longest, MOST_STEPS)
            window = replace(window, steps=steps)
        try:
            trial = self.compare(
                Variant(), result.best, window, enough=_is_narrow, pairs=TOTAL_PAIRS,
                limit_s=self.budget.reserve_s / 2, ordinarily=True,
            )  # fmt: skip
        except TrialFailed as error:
            result.notes.append(f"the last comparison failed: {error}")
            return
        result.total = trial.ratio()
        result.other_cores.append(trial.other_cores())


def _failure(error: Exception) -> str:
    """What went wrong, and on which line; on one line itself."""
    last, message = traceback.extract_tb(error.__traceback__)[-1], " ".join(str(error).split())
    return f"{type(error).__name__}: {message} ({Path(last.filename).name}:{last.lineno}, in {last.name})"


def _changes(remedy: Remedy) -> str:
    """What a person is to allow."""
    return f"it changes {_CHANGES[remedy.exactness]}: --allow {remedy.exactness}"


def _promise(attempt: Attempt) -> float:
    """The gain as far as it was measured, else as predicted."""
    return attempt.speedup.value if attempt.speedup else attempt.proposal.predicted


def _is_narrow(trial: PairedRuns) -> bool:
    """Whether the total is known well enough to be reported."""
    ratio = trial.ratio()
    return len(trial.pairs) >= LEAST_TOTAL_PAIRS and ratio.high < NARROW * ratio.low
