"""The search: diagnose, try what promises most, keep what is faster and computes the same, diagnose again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import mean

from unstall.optimize import remedies
from unstall.optimize.case import Exactness, Proposal, Unfit
from unstall.optimize.diagnosis import Diagnosis, diagnose
from unstall.optimize.program import Program
from unstall.optimize.reference import Reference
from unstall.optimize.trial import Comparison, TrialFailed, Window, compare, decided
from unstall.optimize.workshop import Arm, Workshop, WorkshopError
from unstall.records.report import Remedy
from unstall.statistics import Ratio
from unstall.text.units import percent

LEAST_GAIN = 1.02
"""A change must be faster than this with 95 % confidence to be kept: less is not worth a changed line."""
_CONFIRM_PAIRS = 2
_LARGE_GAIN = 1.3  # so large that one fresh pair is enough
_MOST_PAIRS = 20  # of runs, spent on one change whose gain is not certain
_WINDOW_S = 4.0
_LEAST_TRIAL_S = 40.0
_TOTAL_ORIGINAL_S, _TOTAL_CHANGED_S = 12.0, 3.0
"""Of steps in each run of the last comparison: at most of the original's, and of the changed program's if it may be."""
_TOTAL_SHARE = 1 / 8  # of what is set aside for the last comparison, for the steps of one run of the original
_TOTAL_PAIRS = 6
_NARROW = 1.2  # upper over lower end of the interval
_LARGEST_RESERVE_S = 120.0
_MIN_STEPS, _MAX_STEPS = 12, 2000
_WARMUP_STEPS = 8
_FOLD_BATCHES = 6
_MAX_FAILURES_OF_REMEDY = 2
_CONCURRENCY = ("loader-workers", "threads")
"""Remedies whose best option changes with every other change: their options may be tried again after one is kept."""


@dataclass
class Options:
    """What the person asked for."""

    budget_s: float = 900.0
    worth: float = 0.05
    """Stop when the best predicted gain is less than this."""
    allow_training_change: bool = False


@dataclass
class Attempt:
    """A change while it is being tried; the fields are those of the record it ends as."""

    name: str
    exactness: Exactness
    predicted_speedup: float
    kept: bool = False
    speedup: float | None = None
    ci95: tuple[float, float] | None = None
    equivalent: bool | None = None
    why_not: str | None = None

    def record(self) -> Remedy:
        """What the report says of it."""
        return Remedy(**asdict(self))


@dataclass
class Result:
    """What the search found."""

    first: Diagnosis
    last: Diagnosis
    best: Arm
    tried: list[Attempt] = field(default_factory=list)
    advice: list[Proposal] = field(default_factory=list)
    kept: list[Proposal] = field(default_factory=list)
    total: Ratio | None = None
    """Original against changed, side by side, without instrumentation."""
    original_step_s: float | None = None
    changed_step_s: float | None = None
    revisits: bool = False
    """The total holds from the second visit of each sample on."""
    reproducible: bool = True
    why_stopped: str = ""
    notes: list[str] = field(default_factory=list)
    other_cores: list[float] = field(default_factory=list)
    """Cores that other programs took during each trial."""


Tell = Callable[[str], None]


class Search:
    """One search over one program."""

    def __init__(self, program: Program, workshop: Workshop, options: Options, tell: Tell):
        self.program = program
        self.workshop = workshop
        self.options = options
        self.tell = tell
        self.began = time.monotonic()
        self.done: set[tuple[str, str]] = set()
        self.undecided: dict[tuple[str, str], Comparison] = {}
        """Of changes to the best so far that look worth it and are not certain: gone on with while there is time."""
        self.failures: dict[str, int] = {}
        self.spent_s: list[float] = []
        """Seconds that each trial took."""
        self.diagnosis_s = 0.0
        self.reference = Reference(workshop)
        self.in_batches = False
        """A kept change calls the model for many items at once: from then on its rows are what is counted."""
        self.revisits = False
        """A kept change pays from the second visit of a sample on: later trials are of that state."""

    def run(self) -> Result:
        """Search until nothing promising is left or the budget is spent. Raises TrialFailed when the original fails."""
        self.tell("diagnosing the program as it is")
        first = diagnose(self.program, self.workshop, Arm())
        self.diagnosis_s = self._spent()
        result = Result(first, first, Arm())
        self.tell("what the original computes, twice")
        self.reference.observe(first.kind)
        result.reproducible = self.reference.own_difference == 0.0
        try:
            self._improve(result)
        except KeyboardInterrupt:
            result.why_stopped = "interrupted"
        if result.kept and result.why_stopped != "interrupted":
            self.tell("the original and the changed program side by side")
            self._total(result)
        return result

    def _improve(self, result: Result) -> None:
        current = result.first
        proposals, unfit = self._proposals(current)
        while True:
            result.advice = [one for one in proposals if one.advice]
            open_ones = [one for one in proposals if not one.advice and self._is_open(one)]
            worthy = [one for one in open_ones if one.predicted - 1 >= self.options.worth]
            if not worthy or self._left() <= self._next_s():
                self._note_untried(result, open_ones, unfit)
                nothing = f"no remedy left that promises {percent(self.options.worth)}"
                result.why_stopped = "the budget is spent" if worthy else nothing
                return
            proposal = max(worthy, key=self._promise)
            began = self._spent()
            kept = self._try(proposal, current, result)
            self.spent_s.append(self._spent() - began)
            if kept is None:
                continue
            result.best, result.kept = kept, [*result.kept, proposal]
            self.done = {one for one in self.done if one[0] not in _CONCURRENCY or one == proposal.id}
            self.undecided.clear()  # they are of another best: what is still worth it is proposed anew
            self.tell("diagnosing again")
            current = result.last = diagnose(self.program, self.workshop, kept)
            proposals, unfit = self._proposals(current)

    def _is_open(self, proposal: Proposal) -> bool:
        return proposal.id not in self.done and self.failures.get(proposal.remedy, 0) <= _MAX_FAILURES_OF_REMEDY

    def _promise(self, proposal: Proposal) -> float:
        """The gain as far as it was measured, else as predicted."""
        seen = self.undecided.get(proposal.id)
        return seen.ratio().value if seen else proposal.predicted

    def _proposals(self, current: Diagnosis) -> tuple[list[Proposal], dict[str, str]]:
        found: list[Proposal] = []
        unfit: dict[str, str] = {}
        for remedy in remedies.every():
            try:
                answer = remedy.propose(current.case)
            except Exception as error:  # whatever is wrong with one remedy, the others go on
                answer = Unfit(f"it failed: {error!r}")
            if isinstance(answer, Unfit):
                unfit[remedy.NAME] = answer.reason
            else:
                found += answer
        if not self.options.allow_training_change:
            found = [one if one.exactness != "training-changing" else _as_advice(one) for one in found]
        return found, unfit

    def _note_untried(self, result: Result, open_ones: Sequence[Proposal], unfit: dict[str, str]) -> None:
        tried = {remedy.name for remedy in result.tried}
        for one in open_ones:
            name = f"{one.remedy}: {one.title}"
            if name not in tried:
                small = one.predicted - 1 < self.options.worth
                why_not = f"predicted gain below {percent(self.options.worth)}" if small else "the budget was spent"
                result.tried.append(
                    Attempt(
                        name=name, exactness=one.exactness, predicted_speedup=one.predicted,
                        why_not=f"not tried: {why_not} ({one.because})",
                    )
                )  # fmt: skip
        result.notes += [f"{name}: {reason}" for name, reason in unfit.items()]

    # ------------------------------------------------------------------ one trial

    def _try(self, proposal: Proposal, current: Diagnosis, result: Result) -> Arm | None:
        """Try one change against the best so far; the new best if it is kept."""
        settings = {**result.best.settings, **proposal.settings}
        changed = Arm(proposal.sources or result.best.sources, settings)
        seen = self.undecided.pop(proposal.id, None)
        entry = self._entry(proposal, result, anew=seen is None)
        self.done.add(proposal.id)
        again = f", {seen.ratio().value:.2f}× so far: more pairs of runs" if seen else ""
        self.tell(f"trying {entry.name} (predicted {proposal.predicted:.2f}×{again})")
        try:
            found = self._race(result.best, changed, current, proposal, seen)
            ratio = found.ratio()
            entry.speedup, entry.ci95 = ratio.value, (ratio.low, ratio.high)
            result.other_cores.append(found.other_cores())
            before, after = found.unit_s()
            self.tell(f"  {before * 1e3:.3g} ms → {after * 1e3:.3g} ms a step, in {len(found.pairs)} pairs of runs")
            if ratio.low <= LEAST_GAIN:
                entry.why_not = "no gain" if ratio.value <= LEAST_GAIN else "the gain is not certain"
                if ratio.value - 1 >= self.options.worth and found.could_be_decided(LEAST_GAIN, _MOST_PAIRS):
                    self.undecided[proposal.id] = found
                    self.done.remove(proposal.id)
            if entry.why_not or not self._is_equivalent(entry, changed, current.kind, proposal, result):
                return None
            if not self._confirmed(entry, found, result.best, changed, self._window(current, proposal)):
                return None
        except (TrialFailed, WorkshopError) as error:
            self.failures[proposal.remedy] = self.failures.get(proposal.remedy, 0) + 1
            entry.why_not = str(error)
            return None
        entry.kept = True
        self.in_batches = self.in_batches or proposal.in_batches
        self.revisits = self.revisits or proposal.needs_revisits
        self.tell(f"kept {entry.name}: {entry.speedup:.2f}×")
        return changed

    def _entry(self, proposal: Proposal, result: Result, *, anew: bool) -> Attempt:
        """Where the report tells of a change: a new place, or that of its trial so far."""
        name = f"{proposal.remedy}: {proposal.title}"
        if not anew:
            result.tried = [one for one in result.tried if one.name != name]
        result.tried.append(Attempt(name=name, exactness=proposal.exactness, predicted_speedup=proposal.predicted))
        return result.tried[-1]

    def _window(self, current: Diagnosis, proposal: Proposal) -> Window:
        """The same steps for both arms; when samples must be met again, few different samples."""
        steps = int(min(_MAX_STEPS, max(_MIN_STEPS, _WINDOW_S / current.step_s)))
        if proposal.in_batches or self.in_batches:
            return Window("forward", _WARMUP_STEPS, None, seconds=_WINDOW_S)
        if not (proposal.needs_revisits or self.revisits):
            return Window(current.kind, _WARMUP_STEPS, steps)
        batch = current.batch_size or 1
        fold = batch * _FOLD_BATCHES
        workers = max(1, current.workers)
        return Window(current.kind, _WARMUP_STEPS + _FOLD_BATCHES * (workers + 1), steps, fold=fold)

    def _race(
        self, base: Arm, changed: Arm, current: Diagnosis, proposal: Proposal, seen: Comparison | None
    ) -> Comparison:
        window, limit_s = self._window(current, proposal), max(_LEAST_TRIAL_S, self.options.budget_s / 8)
        enough = decided(LEAST_GAIN)
        return compare(self.workshop, base, changed, window, enough=enough, limit_s=limit_s, seen=seen)

    def _confirmed(self, entry: Attempt, found: Comparison, base: Arm, changed: Arm, window: Window) -> bool:
        """Fresh pairs must show the gain again: the best of many trials looks better than it is."""
        pairs = 1 if found.ratio().low > _LARGE_GAIN else _CONFIRM_PAIRS
        fresh = compare(self.workshop, base, changed, window, enough=lambda found: True, pairs=pairs)
        together = Comparison([*found.pairs, *fresh.pairs]).ratio()
        entry.speedup, entry.ci95 = together.value, (together.low, together.high)
        again = math.exp(mean(fresh.log_ratios))
        if again < LEAST_GAIN:
            entry.why_not = f"the gain did not come again on fresh runs ({again:.2f}×)"
            return False
        if together.low <= 1:
            entry.why_not = "the gain is not certain, with fresh runs as well"
            return False
        return True

    def _is_equivalent(self, entry: Attempt, changed: Arm, kind: str, proposal: Proposal, result: Result) -> bool:
        self.tell(f"does it compute the same? {entry.name}")
        entry.equivalent, entry.why_not = self.reference.judge(changed, kind, proposal, result.kept)
        return entry.why_not is None

    # ------------------------------------------------------------------ the last word

    def _total(self, result: Result) -> None:
        """The original and the changed program in turns, with nothing but a clock in them."""
        window = self._window(result.first, result.kept[0])
        original_s = min(_TOTAL_ORIGINAL_S, self._reserve() * _TOTAL_SHARE)
        longest = max(window.steps or 0, int(original_s / result.first.step_s))
        steps = min(max(window.steps or 0, int(_TOTAL_CHANGED_S / result.last.step_s)), longest, _MAX_STEPS)
        window = window if self.in_batches else replace(window, steps=steps)
        try:
            found = compare(
                self.workshop, Arm(), result.best, window,
                enough=_is_narrow, pairs=_TOTAL_PAIRS, limit_s=self._reserve() / 2,
            )  # fmt: skip
        except TrialFailed as error:
            result.notes.append(f"the last comparison failed: {error}")
            return
        result.total, result.revisits = found.ratio(), self.revisits
        result.original_step_s, result.changed_step_s = found.unit_s()
        result.other_cores.append(found.other_cores())

    def _reserve(self) -> float:
        """Seconds set aside for the last comparison."""
        return min(0.25 * self.options.budget_s, _LARGEST_RESERVE_S)

    def _left(self) -> float:
        """Seconds of the budget left, with what the last comparison needs set aside."""
        return self.options.budget_s - self._reserve() - self._spent()

    def _spent(self) -> float:
        """Seconds since the search began, in which it was not suspended."""
        return time.monotonic() - self.began - self.workshop.suspended_s

    def _next_s(self) -> float:
        """What the next trial and the diagnosis after it will take: none is begun that would end beyond the budget.

        The first one is begun in any case: without it nothing was tried.
        """
        return mean(self.spent_s) + self.diagnosis_s if self.spent_s else 0.0


def _is_narrow(found: Comparison) -> bool:
    """Whether the total is known well enough to be told."""
    ratio = found.ratio()
    return len(found.pairs) >= 3 and ratio.high < _NARROW * ratio.low


def _as_advice(proposal: Proposal) -> Proposal:
    return replace(proposal, advice=True)
