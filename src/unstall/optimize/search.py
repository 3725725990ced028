"""The search: diagnose, try what promises most, keep what is faster and computes the same, diagnose again."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from unstall.optimize import comparison, diagnosis
from unstall.optimize.agent import Agent, AgentChange
from unstall.optimize.budget import SearchBudget
from unstall.optimize.comparison import PairedRuns, TrialFailed, interval_excludes
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
    COMPILES_S,
    DIAGNOSIS_S,
    LEAST_GAIN,
    LEAST_TOTAL_PAIRS,
    LEAST_TRIAL_S,
    MOST_FAILURES,
    MOST_STEPS,
    NARROW,
    QUICK_DIAGNOSIS_S,
    TOTAL_CHANGED_S,
    TOTAL_ORIGINAL_S,
    TOTAL_PAIRS,
    TOTAL_SHARE,
)
from unstall.optimize.trial import ChangeTrials
from unstall.optimize.trial_runner import TrialNotPossible, TrialRunner, Trials, Variant
from unstall.optimize.windows import steps_to_compare
from unstall.records.remedies import RemedyStatus
from unstall.text.units import percent

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
        self.trials = ChangeTrials(compare=compare, reference=reference, budget=self.budget, options=options, log=log)
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
            worthy = [
                attempt for attempt in self.candidates
                if self._is_open(attempt) and self._is_worthy(attempt) and self._is_affordable(attempt)
            ]  # fmt: skip
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
        if self.agent is None or self._keeps_failing(AgentChange.name):
            return []
        if not self.agent.is_worth_asking(result, self.options.worth):
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
        window = self.trials.window(result, result.last, attempt.proposal)
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

    def _rank(self, attempt: Attempt, state: Diagnosis) -> tuple[bool, bool, bool, bool, float]:
        """An exact cure of the culprit's own line goes first, one that pays in the first epoch before a cache.

        Then one of a line that leads there. But not before one that is as good as exact and promises far more: what
        the first one leaves there may be nothing that the other can work on. In a quick search what compiles goes last.
        """
        lines, culprit = attempt.proposal.lines, state.report.verdict.culprit
        at_once = not (self.options.quick and attempt.proposal.compiles)
        if attempt.speedup or lines is None or culprit is None or attempt.remedy.exactness != "exact":
            return at_once, False, False, False, attempt.promise
        owned = state.context.user_file
        promise, place = attempt.promise, (owned(culprit.file), culprit.line)
        cures = lines.hold(*place) and not any(
            other.remedy.exactness == "close" and other.proposal.lines is not None and other.proposal.lines.hold(*place)
            and self._is_open(other) and other.promise > promise**2
            for other in self.candidates
        )  # fmt: skip
        leads = any(lines.hold(owned(caller.file), caller.line) for caller in culprit.callers)
        return at_once, cures, cures and not attempt.proposal.needs_revisits, leads, promise

    def _is_open(self, attempt: Attempt) -> bool:
        if attempt.status is RemedyStatus.ADVICE or attempt.id in self.settled:
            return False
        return not self._keeps_failing(attempt.remedy.name)

    def _keeps_failing(self, remedy: str) -> bool:
        return self.failures.get(remedy, 0) > MOST_FAILURES

    def _is_worthy(self, attempt: Attempt) -> bool:
        return attempt.proposal.predicted - 1 >= self.options.worth

    def _is_affordable(self, attempt: Attempt) -> bool:
        """Whether there is time to compile it, if it compiles: its first run takes a minute or more."""
        return not attempt.proposal.compiles or self.budget.remaining_s > COMPILES_S

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
                    if not self._is_affordable(attempt):
                        reason = (
                            f"compiling takes a minute or more, and {max(0.0, self.budget.remaining_s):.0f} s are left"
                        )
                attempt.end(status, f"not tried: {reason} ({attempt.proposal.because})")
                result.attempts.append(attempt)
        result.attempts += [attempt for attempt in self.candidates if attempt.status is RemedyStatus.ADVICE]

    def _try(self, attempt: Attempt, result: Result) -> Variant | None:
        """Try one change against the best variant so far; the changed variant if the change is kept."""
        result.add(attempt)
        self.settled[attempt.id] = attempt
        changed = self.trials.run(attempt, result)
        if attempt.status is RemedyStatus.FAILED:
            self.failures[attempt.remedy.name] = self.failures.get(attempt.remedy.name, 0) + 1
        if attempt.is_in_doubt:
            del self.settled[attempt.id]
        return changed

    # ------------------------------------------------------------------ the last comparison

    def _compare_with_original(self, result: Result) -> None:
        """The original and the changed program in turns, each a process of its own, with nothing but a clock in it."""
        window = self.trials.window(result, result.first, result.kept[0].proposal)
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


def _is_narrow(trial: PairedRuns) -> bool:
    """Whether the total is known well enough to be reported."""
    ratio = trial.ratio()
    return len(trial.pairs) >= LEAST_TOTAL_PAIRS and ratio.high < NARROW * ratio.low
