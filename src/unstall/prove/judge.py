"""The proof: refuse, look at the first steps, run whole, watched and not, in turns, and end with one of five words.

What is plainly different is said as soon as it is seen. A program is watched (its numbers are written down) under its
own seeds and under others; it is timed where nothing watches, and those runs must leave the same behind. Every second
pair of these has other seeds too: a result that the change knows beforehand fits none of them. What is proven by then
is let fail halfway, and followed line by line once more, under seeds of both kinds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unstall.optimize import thresholds as rounding
from unstall.prove import accounts, calls, faults, reached, refusals, saves, thresholds
from unstall.prove.comparing import Comparer
from unstall.prove.growth import growing
from unstall.prove.runner import WholeRun
from unstall.prove.runs import (
    OriginalFailed,
    ProofEnded,
    Runs,
    SideRunner,
    agree,
    begin_alike,
    other_kind,
    other_seeds,
    plan_of,
    reseeded,
)
from unstall.prove.timing import ProofPair, break_even, doubt, medians, own_pairs, ratio_of
from unstall.prove.trees import Sides
from unstall.records.proof import Difference, Proof, ProofRatio

_RUNS_WATCHED_LATER = 4  # as they are, and under other seeds
_RUNS_AT_THE_END = 3  # two halves that fail, two that are followed
_NOTHING_SEEN = "neither losses nor outputs of models were seen: what it leaves behind is compared alone"
_FIXED_SEEDS = "the program's seeds cannot be changed from outside: it was compared under its own alone"
_DRAWS_OTHERWISE = "random numbers are drawn as the program draws them: not sample by sample, as one side does not"
_ORDERS_ITSELF = "not compared with a sample less in each epoch, as the change orders its samples itself"
_FAILS_UNDER_OTHERS = "under other seeds the original fails: it was compared under its own alone"


@dataclass(frozen=True)
class ProofOptions:
    """What the person asked for."""

    budget_s: float = 900.0
    allow: frozenset[str] = frozenset()
    """What may differ: ``reduced``, the values; ``training-changing``, the number of steps and samples too."""


@dataclass
class Judge:
    """One proof."""

    runner: SideRunner
    sides: Sides
    options: ProofOptions
    log: Callable[[str], None] = lambda line: None
    clock: Callable[[], float] = time.monotonic
    by_sample: bool = True
    """Whether each sample is drawn under a seed of its own: a change may draw those of a batch at once."""
    has_seeds: bool = True
    """Whether the program's random numbers can be made others from outside."""
    pairs: list[ProofPair] = field(default_factory=list)
    """Whole runs that nothing watches."""
    watched: list[ProofPair] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)
    """Changed lines that no run reached."""

    def prove(self) -> Proof:
        """Judge the change."""
        self.runs = Runs(self.runner, self.sides, self.options.budget_s, self.clock)
        self.comparer = Comparer(self.runs, self.options.allow, self.log)
        self.known_by = self.comparer.known_by
        try:
            self._refuse()
            kind = self._look()
            self._watch(kind)
            self._time()
            ended = self._conclude()
            if ended.verdict == "proven":
                self._fail()
                self._follow()
        except ProofEnded as early:
            ended = early
        return self._proof(ended)

    # ------------------------------------------------------------------ the parts of a proof

    def _refuse(self) -> None:
        if not any(True for _ in self.sides.differing):
            raise ProofEnded("refused", "there is nothing to judge: both sides are the same")
        touched = refusals.first(self.sides)
        if touched is not None:
            raise ProofEnded("refused", f"it changes what is measured: {touched}", first_difference=touched)

    def _look(self) -> str:
        """Compare the first steps, and find out what a step of this program is."""
        self.log("the first steps of both")
        plan = plan_of("optimizer", steps=int(thresholds.LOOK_STEPS))
        original = self.runs.original(plan)
        if original.clock is None:
            kind = other_kind(original)
            if not kind:
                return ""
            plan = plan_of(kind, steps=int(thresholds.LOOK_STEPS))
            original = self.runs.original(plan)
        kind = str(plan["clock"]["kind"])
        try:
            self.comparer.compare(plan, original, self.runs.changed(plan, original.seconds), is_whole=False)
        except ProofEnded as ended:
            difference = ended.facts.get("first_difference")
            if difference is None or difference.kind != "values" or not self._look_as_it_draws(kind):
                raise
        return kind

    def _look_as_it_draws(self, kind: str) -> bool:
        """Whether both do the same where random numbers are drawn as the program draws them; they are from then on.

        A change that draws for a whole batch what was drawn for each sample does the same, but not where each sample
        has a seed. A program that sets no seeds is another one each time: False.
        """
        plan = plan_of(kind, steps=int(thresholds.LOOK_STEPS), by_sample=False)
        original = self.runs.original(plan)
        if not agree(original, self.runs.original(plan)):
            return False
        self.comparer.compare(plan, original, self.runs.changed(plan, original.seconds), is_whole=False)
        self.by_sample = False
        self.known_by.append(_DRAWS_OTHERWISE)
        return True

    def _watch(self, kind: str) -> None:
        """Compare whole runs, under the program's seeds and under others."""
        self.log("whole runs of both, watched")
        plan = plan_of(kind, by_sample=self.by_sample)
        original = self.runs.original(plan)
        changed = self.runs.changed(plan, original.seconds)
        self.watched.append(ProofPair(original, changed))
        if original.account and changed.account and accounts.takes_precedence(original.account, changed.account):
            raise ProofEnded("refused", "it changes what is measured: the system prefers it to other programs")
        self.comparer.compare(plan, original, changed, is_whole=True)
        self.known_by.append(self._words_of_tensors(original) if original.tensors else _NOTHING_SEEN)
        for_rounding = 1 + rounding.PERTURBED_RUNS if self.comparer.sameness == "close" else 0
        others = 2 * thresholds.LEAST_PAIRS + _RUNS_WATCHED_LATER + _RUNS_AT_THE_END
        self.runs.need(original.seconds * (others + for_rounding))
        if not original.tensors:
            if not any(content.size for content in original.effects.contents.values()):
                raise ProofEnded(
                    "inconclusive", "the program computes, prints and writes nothing that could be compared"
                )
            return
        self._watch_as_it_is(kind)
        self._watch_under_other_seeds(kind, original)

    def _watch_as_it_is(self, kind: str) -> None:
        """Compare whole runs of the program with its seeds untouched.

        What a change does under the program's own seeds alone shows here, which are others where numbers are compared.
        """
        self.log("whole runs of both, as they are")
        plan = {key: value for key, value in plan_of(kind).items() if key != "seed"}
        original = self.runs.original(plan)
        changed = self.runs.changed(plan, original.seconds)
        self.watched.append(ProofPair(original, changed))
        self.comparer.compare_as_it_is(plan, original, changed)

    def _watch_under_other_seeds(self, kind: str, original: WholeRun) -> None:
        """Compare whole runs under seeds that the change has not seen, and with a sample less in each epoch.

        ``original``: a run under the usual seeds.
        """
        self.log("the same under seeds that the change has not seen, with a sample less")
        shift = other_seeds()
        runs = self._both(kind, shift, is_shorter=True) or self._both(kind, shift, is_shorter=False)
        if runs is None:
            self.has_seeds = False
            self.known_by.append(_FAILS_UNDER_OTHERS)
            return
        plan, other, changed = runs
        is_shorter = bool(_shortened(other))
        self.has_seeds = not begin_alike(original, other)
        if not (self.has_seeds or is_shorter):
            self.known_by.append(_FIXED_SEEDS)
            return
        self.watched.append(ProofPair(other, changed))
        conditions = ["under other seeds"] * self.has_seeds + ["with a sample less in each epoch"] * is_shorter
        self.comparer.compare(plan, other, changed, is_whole=True, where=f" {' and '.join(conditions)}")
        self.known_by.append(
            f"under the program's seeds, and under those seeds changed by {shift}" if self.has_seeds else _FIXED_SEEDS
        )
        if is_shorter:
            self.known_by.append("with the data as they are, and with a sample less in each epoch")

    def _both(self, kind: str, shift: int, *, is_shorter: bool) -> tuple[Mapping[str, Any], WholeRun, WholeRun] | None:
        """A watched run of each side under other seeds, with their plan; None where that cannot be compared.

        The original may not work so, or one side takes its samples in a way of its own, which nothing shortens.
        """
        plan = plan_of(kind, shift=shift, is_shorter=is_shorter, by_sample=self.by_sample)
        try:
            original = self.runs.original(plan)
        except OriginalFailed:
            return None
        changed = self.runs.changed(plan, original.seconds)
        ends_alike = changed.effects.status == original.effects.status
        if is_shorter and ends_alike and _shortened(changed) != _shortened(original):
            self.known_by.append(_ORDERS_ITSELF)
            return None
        return plan, original, changed

    def _time(self) -> None:
        """Time whole runs that nothing watches, in turns, until it is clear; compare what each leaves behind.

        In turns A B, B A; under the program's own seeds and under others.
        """
        while len(self.pairs) < thresholds.MOST_PAIRS:
            number = len(self.pairs)
            longest = max((pair.original.seconds + pair.changed.seconds for pair in self.pairs), default=0.0)
            if number >= thresholds.LEAST_PAIRS and longest > self.runs.remaining():
                return
            shift = other_seeds() if self.has_seeds and number % 2 else None
            self.log(f"pair {number + 1} of whole runs{', under other seeds' * (shift is not None)}")
            self.pairs.append(self.runs.timed(shift, changed_first=number % 4 in (1, 2)))
            self.comparer.compare_effects(self.pairs)
            fewer = saves.fewer(self.pairs)
            if fewer is not None and not fewer.is_by_time:
                self.comparer.judge(fewer.difference)
            ratio = ratio_of(self.pairs)
            if ratio is not None and ratio.high < thresholds.LEAST_GAIN:
                return
            in_doubt = number < thresholds.MOST_PAIRS_IN_DOUBT and doubt(self.pairs, self.watched) is not None
            if ratio is not None and ratio.low > thresholds.LEAST_GAIN and not in_doubt:
                return

    def _conclude(self) -> ProofEnded:
        self.comparer.note_errors(self.pairs)
        ratio = ratio_of(self.pairs)
        if ratio is None or ratio.low <= thresholds.LEAST_GAIN <= ratio.high:
            count = len(self.pairs)
            more_s = sum(pair.original.seconds + pair.changed.seconds for pair in self.pairs)  # as many pairs again
            return ProofEnded("inconclusive", f"{count} pairs of runs do not show whether it is faster", more_s=more_s)
        if ratio.high < thresholds.LEAST_GAIN:
            return ProofEnded("not-faster", f"whole runs are {ratio.value:.2f} times as fast")
        reason = doubt(self.pairs, self.watched)
        if reason is not None:
            return ProofEnded("inconclusive", reason)
        for missed in (saves.fewer(self.pairs), saves.delayed(self.watched)):
            if missed is not None and missed.is_by_time:
                reason = f"{missed.difference}, which may be for the time that it takes: a longer run would tell"
                return ProofEnded("inconclusive", reason)
            self.comparer.judge(missed.difference if missed is not None else None)
        self.comparer.judge(saves.resized(self.watched))
        reason = growing(self.watched) or self._beside_the_results()
        if reason is not None:
            return ProofEnded("inconclusive", reason)
        return ProofEnded("proven", f"whole runs are {ratio.value:.2f} times as fast, and the results the same")

    def _beside_the_results(self) -> str | None:
        """What the changed program does to the machine in all runs of a kind, and the original does in none."""
        if self.pairs and all(_outlives(pair.changed) and not _outlives(pair.original) for pair in self.pairs):
            longest = max(pair.changed.outlived_s for pair in self.pairs)
            return f"a process of it goes on for {longest:.1f} s after its end, and the original's do not"
        reasons = [_done_to_the_machine(pair.original, pair.changed) for pair in self.watched]
        return f"{reasons[0]}, which the original does not" if reasons and all(reasons) else None

    def _fail(self) -> None:
        """Compare how both end where a call of the model fails halfway."""
        plan = faults.plan_of(self.watched[0].original) if self.watched else None
        if plan is None:
            return
        self.log("how both end where something fails")
        original, changed = self.runs.failing(plan)
        if original.timed_out:
            return
        if changed.timed_out:
            self.comparer.judge(Difference(kind="effects", place="end of the run", detail="it has none"), faults.WHERE)
        self.comparer.judge(faults.first_difference(original.effects, changed.effects), faults.WHERE)
        self.known_by.append(f"exit code, and files that are there{faults.WHERE}")

    def _follow(self) -> None:
        """Look which lines of the change are reached, and whether the program's own seeds have a way of their own."""
        self.unreached = [*reached.compiled(self.sides)]
        lines = reached.changed_lines(self.sides)
        if not lines:
            return
        self.log("which lines of the change are reached")
        own = self._followed(lines, None)
        others = list(self._under_others(lines, own))
        place = reached.only_here(own.reached, [other.reached for other in others])
        if place is not None:
            raise ProofEnded("inconclusive", reached.in_words(place, len(others)))
        self._refuse_more_and_more([own, *others])
        by_calls = calls.seed_dependent(own.calls, [other.calls for other in others])
        if by_calls:
            plans = [{"reached": {"files": {}}, **reseeded(shift)} for shift in (None, other_seeds())]
            of_original = [self.runs.original(plan).calls for plan in plans]
            dependence = calls.not_the_originals(by_calls, *of_original)
            if dependence is not None:
                raise ProofEnded("inconclusive", calls.in_words(dependence, len(others)))
        places = own.reached.union(*(other.reached for other in others))
        self.unreached += reached.never(self.sides, lines, places)

    def _refuse_more_and_more(self, runs: Sequence[WholeRun]) -> None:
        """Raise ProofEnded where a function is called more and more often, and none is in the original.

        As often in all of these runs: what follows from the data, detections of a model that learns, is other numbers.
        """
        rising = set.intersection(*(set(calls.rising(run.quarters)) for run in runs))
        if not rising or len(runs) < 2 or calls.rising(self.runs.original({"reached": {"files": {}}}).quarters):
            return
        first, *_ = sorted(rising)
        raise ProofEnded("inconclusive", calls.rising_in_words(*first))

    def _under_others(self, lines: Mapping[str, Sequence[int]], own: WholeRun) -> Iterator[WholeRun]:
        """Runs under other seeds: more and more of them, as long as the program's own are told from all."""
        others: list[WholeRun] = []
        while self.has_seeds and len(others) < thresholds.MOST_OTHER_SEEDS:
            others.append(self._followed(lines, other_seeds()))
            yield others[-1]
            is_distinct = reached.only_here(own.reached, [other.reached for other in others]) is not None
            if not (is_distinct or calls.seed_dependent(own.calls, [other.calls for other in others])):
                return

    def _followed(self, lines: Mapping[str, Sequence[int]], shift: int | None) -> WholeRun:
        """A run of the changed program whose lines are followed."""
        plan = {"reached": {"files": lines}, **reseeded(shift)}
        run = self.runs.run(self.sides.changed, plan, self.runs.remaining())
        usual = self.pairs[0].changed.effects.status
        if run.effects.status != usual:
            raise ProofEnded(
                "inconclusive", f"it ends with exit code {run.effects.status} where its lines are followed, not {usual}"
            )
        if reached.LOST in run.reached:
            raise ProofEnded("inconclusive", "the program ends what follows its lines: a debugger of its own does")
        return run

    # ------------------------------------------------------------------ the answer

    def _words_of_tensors(self, original: WholeRun) -> str:
        exactness = {"exact": "bit for bit", "close": "but for rounding", "reduced": "not compared, as allowed"}
        counted = f" ({words})" if original.account and (words := accounts.in_words(original.account)) else ""
        return (
            f"inputs, outputs, losses, weights and optimizer state of whole runs, "
            f"{exactness[self.comparer.sameness]}{counted}"
        )

    def _proof(self, ended: ProofEnded) -> Proof:
        ratio = ratio_of(self.pairs)
        is_same = ended.verdict in ("proven", "not-faster") or (ended.verdict == "inconclusive" and bool(self.watched))
        known_by = list(self.known_by)
        if self.pairs:
            reseeded = len(self.pairs) - len(own_pairs(self.pairs))
            known_by.append(
                f"exit code, standard output and {self._files()} of {len(self.pairs)} pairs of whole runs that nothing "
                f"watches, timed from outside{f', {reseeded} of them under other seeds' * bool(reseeded)}"
            )
        return Proof(
            verdict=ended.verdict,
            reason=ended.reason,
            changes=self.sides.label,
            sameness=self.comparer.sameness if is_same else None,
            ratio=ProofRatio(value=ratio.value, low=ratio.low, high=ratio.high)
            if ratio and math.isfinite(ratio.high)
            else None,
            known_by=known_by,
            seconds=medians(self.pairs, lambda run: run.seconds),
            memory_bytes=medians(self.pairs, lambda run: run.memory_bytes),
            break_even_steps=break_even(self.watched) if self.pairs else None,
            unreached=self.unreached,
            pairs=len(self.pairs),
            **ended.facts,
        )

    def _files(self) -> str:
        count = len(self.pairs[0].original.effects.contents) - 1
        return "one file" if count == 1 else f"{count} files"


def _shortened(run: WholeRun) -> int:
    """How many of its epochs had a sample less."""
    return int((run.account or {}).get("shortened", 0))


def _outlives(run: WholeRun) -> bool:
    return run.outlived_s > thresholds.OUTLIVES_S


def _done_to_the_machine(original: WholeRun, changed: WholeRun) -> str | None:
    if changed.refused and not original.refused:
        return f"it tries what the sandbox refuses ({changed.refused[0]})"
    if original.account and changed.account:
        return accounts.left_in_shared_memory(original.account, changed.account)
    return None
