"""The proof: refuse, look at the first steps, run whole, watched and not, in turns, and end with one of five words.

What is plainly different is said as soon as it is seen. A program is watched (its numbers are written down) under its
own seeds and under others; it is timed where nothing watches, and those runs must leave the same behind. Every second
pair of these has other seeds too: a result that the change knows beforehand fits none of them. What is proven by then
is followed line by line once more, under seeds of both kinds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unstall.optimize import thresholds as rounding
from unstall.optimize.sameness import Limits
from unstall.prove import accounts, reached, refusals, thresholds
from unstall.prove.effects import STDERR, Comparison, Effects, words_differ
from unstall.prove.runner import WholeRun
from unstall.prove.runs import Ended, OriginalFailed, Runner, Runs, agree, other_kind, other_seeds, plan_of, reseeded
from unstall.prove.timing import Pair, break_even, doubt, medians, own_pairs, ratio_of
from unstall.prove.trees import Sides
from unstall.records.proof import Difference, Proof, ProofRatio
from unstall.records.remedies import Sameness

_RUNS_UNDER_OTHER_SEEDS = _RUNS_AS_IT_IS = _RUNS_FOLLOWED = 2
_NOTHING_SEEN = "neither losses nor outputs of models were seen: what it leaves behind is compared alone"
_FIXED_SEEDS = "the program's seeds cannot be changed from outside: it was compared under its own alone"
_FAILS_UNDER_OTHERS = "under other seeds the original fails: it was compared under its own alone"
_LEVELS: tuple[Sameness, ...] = ("exact", "close", "reduced")


@dataclass(frozen=True)
class Options:
    """What the person asked for."""

    budget_s: float = 900.0
    allow: frozenset[str] = frozenset()
    """What may differ: ``reduced``, the values; ``training-changing``, the number of steps and samples too."""

    def allows(self, difference: Difference) -> bool:
        """Whether a difference is one that the person allowed; words printed, files and exit code never are."""
        return (difference.kind == "values" and bool(self.allow)) or (
            difference.kind == "counts" and "training-changing" in self.allow
        )  # fmt: skip


@dataclass
class Judge:
    """One proof."""

    runner: Runner
    sides: Sides
    options: Options
    log: Callable[[str], None] = lambda line: None
    clock: Callable[[], float] = time.monotonic
    known_by: list[str] = field(default_factory=list)
    level: int = 0
    """How the same it is so far, in ``_LEVELS``."""
    furthest: float = 0.0
    """The largest difference that was taken for rounding, over its limit."""
    has_seeds: bool = True
    """Whether the program's random numbers can be made others from outside."""
    pairs: list[Pair] = field(default_factory=list)
    """Whole runs that nothing watches."""
    watched: list[Pair] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)
    """Changed lines that no run reached."""
    perturbed: list[tuple[Effects, Effects]] = field(default_factory=list)
    """Of watched whole runs of the original: as it is, and off by one unit in the last place."""

    def prove(self) -> Proof:
        """Judge the change."""
        self.runs = Runs(self.runner, self.sides, self.options.budget_s, self.clock)
        try:
            self._refuse()
            kind = self._look()
            self._watch(kind)
            self._time()
            ended = self._conclude()
            if ended.verdict == "proven":
                self._follow()
        except Ended as early:
            ended = early
        return self._proof(ended)

    # ------------------------------------------------------------------ the parts of a proof

    def _refuse(self) -> None:
        if not any(True for _ in self.sides.differing):
            raise Ended("refused", "there is nothing to judge: both sides are the same")
        touched = refusals.first(self.sides)
        if touched is not None:
            raise Ended("refused", f"it changes what is measured: {touched}", first_difference=touched)

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
        self._compare(plan, original, is_whole=False)
        return str(plan["clock"]["kind"])

    def _watch(self, kind: str) -> None:
        """Compare whole runs, under the program's seeds and under others."""
        self.log("whole runs of both, watched")
        plan = plan_of(kind)
        original = self.runs.original(plan)
        self._compare(plan, original, is_whole=True)
        self.known_by.append(self._words_of_tensors(original) if original.tensors else _NOTHING_SEEN)
        for_rounding = 1 + rounding.PERTURBED_RUNS if _LEVELS[self.level] == "close" else 0
        others = _RUNS_UNDER_OTHER_SEEDS + _RUNS_AS_IT_IS + 2 * thresholds.LEAST_PAIRS + _RUNS_FOLLOWED
        self.runs.need(original.seconds * (others + for_rounding))
        if not original.tensors:
            if not any(content.size for content in original.effects.contents.values()):
                raise Ended("inconclusive", "the program computes, prints and writes nothing that could be compared")
            return
        self._watch_as_it_is(kind)
        self._watch_under_other_seeds(kind, original)

    def _watch_under_other_seeds(self, kind: str, original: WholeRun) -> None:
        """Compare whole runs under seeds that the change has not seen; ``original``: a run under the usual ones."""
        self.log("the same under seeds that the change has not seen")
        shift = other_seeds()
        plan = plan_of(kind, shift=shift)
        try:
            other = self.runs.original(plan)
        except OriginalFailed:
            self.has_seeds = False
            self.known_by.append(_FAILS_UNDER_OTHERS)
            return
        if agree(original, other):
            self.has_seeds = False
            self.known_by.append(_FIXED_SEEDS)
            return
        self._compare(plan, other, is_whole=True)
        self.known_by.append(f"under the program's seeds, and under those seeds changed by {shift}")

    def _watch_as_it_is(self, kind: str) -> None:
        """Compare whole runs of the program with its seeds untouched: steps, calls, samples.

        What a change does under the program's own seeds alone shows here, which are others where numbers are compared.
        Where all was the same to the bit so far, so must the numbers be here.
        """
        self.log("whole runs of both, as they are")
        plan = {key: value for key, value in plan_of(kind).items() if key != "seed"}
        original = self.runs.original(plan)
        changed = self.runs.changed(plan, original.seconds)
        self.watched.append(Pair(original, changed))
        in_counts = self._in_counts(original, changed)
        is_other = _LEVELS[self.level] == "exact" and not agree(original, changed)
        if in_counts is None and not is_other:
            return
        again = self.runs.original(plan)
        if self._in_counts(original, again) is None:
            self._judge(in_counts)
            if agree(original, again):
                self._judge(self._in_values(original, changed) if is_other else None)
                return
        self.known_by.append(
            "under its own seeds the program does not do the same twice: numbers not compared as it is"
        )

    def _in_counts(self, original: WholeRun, other: WholeRun) -> Difference | None:
        if original.account is None:
            return None
        if other.account is None:
            return Difference(kind="effects", place="end of the run", detail="it ends in another way")
        return accounts.first_difference(original.account, other.account, to_the_bit=False)

    def _in_values(self, original: WholeRun, changed: WholeRun) -> Difference:
        """The first number that is another one, of runs that should agree to the bit."""
        pairs = zip(original.tensors, changed.tensors)
        first = next((a for a, b in pairs if not a.equals(b)), None)
        place = first.place if first else "end of the run"
        return Difference(kind="values", place=place, detail="other numbers under the program's own seeds alone")

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
            self._compare_effects()
            ratio = ratio_of(self.pairs)
            if ratio is not None and ratio.high < thresholds.LEAST_GAIN:
                return
            in_doubt = number < thresholds.MOST_PAIRS_IN_DOUBT and doubt(self.pairs, self.watched) is not None
            if ratio is not None and ratio.low > thresholds.LEAST_GAIN and not in_doubt:
                return

    def _conclude(self) -> Ended:
        self._note_errors()
        ratio = ratio_of(self.pairs)
        if ratio is None or ratio.low <= thresholds.LEAST_GAIN <= ratio.high:
            count = len(self.pairs)
            more_s = sum(pair.original.seconds + pair.changed.seconds for pair in self.pairs)  # as many pairs again
            return Ended("inconclusive", f"{count} pairs of runs do not show whether it is faster", more_s=more_s)
        if ratio.high < thresholds.LEAST_GAIN:
            return Ended("not-faster", f"whole runs are {ratio.value:.2f} times as fast")
        reason = doubt(self.pairs, self.watched)
        if reason is not None:
            return Ended("inconclusive", reason)
        return Ended("proven", f"whole runs are {ratio.value:.2f} times as fast, and the results the same")

    def _follow(self) -> None:
        """Look which lines of the change are reached, and whether the program's own seeds have a way of their own."""
        lines = reached.changed_lines(self.sides)
        if not lines:
            return
        self.log("which lines of the change are reached")
        own = self._reached(lines, None)
        others = list(self._under_others(lines, own))
        told = reached.only_here(own, others)
        if told is not None:
            raise Ended("inconclusive", reached.in_words(told, len(others)))
        self.unreached = [*reached.never(self.sides, lines, own.union(*others))]

    def _under_others(
        self, lines: Mapping[str, Sequence[int]], own: frozenset[reached.Place]
    ) -> Iterator[frozenset[reached.Place]]:
        """What is reached under other seeds: more and more of them, as long as the program's own are told from all."""
        others: list[frozenset[reached.Place]] = []
        while self.has_seeds and len(others) < thresholds.MOST_OTHER_SEEDS:
            others.append(self._reached(lines, other_seeds()))
            yield others[-1]
            if reached.only_here(own, others) is None:
                return

    def _reached(self, lines: Mapping[str, Sequence[int]], shift: int | None) -> frozenset[reached.Place]:
        plan = {"reached": {"files": lines}, **reseeded(shift)}
        run = self.runs.run(self.sides.changed, plan, self.runs.remaining())
        usual = self.pairs[0].changed.effects.status
        if run.effects.status != usual:
            raise Ended(
                "inconclusive", f"it ends with exit code {run.effects.status} where its lines are followed, not {usual}"
            )
        if reached.LOST in run.reached:
            raise Ended("inconclusive", "the program ends what follows its lines: a debugger of its own does")
        return run.reached

    def _note_errors(self) -> None:
        """Say where other words go to stderr: logs of metrics do, and so do warnings that an honest change ends."""
        own = own_pairs(self.pairs)
        difference = (
            words_differ(STDERR, [pair.original.errors for pair in own], own[-1].changed.errors) if own else None
        )
        if difference is not None:
            self.known_by.append(f"not judged: {difference}")

    # ------------------------------------------------------------------ comparing

    def _compare(self, plan: Mapping[str, Any], original: WholeRun, *, is_whole: bool) -> None:
        """Run the changed program under a plan and compare it with a run of the original. Raises Ended."""
        changed = self.runs.changed(plan, original.seconds)
        if is_whole:
            self.watched.append(Pair(original, changed))
        if changed.effects.status != original.effects.status:
            self._judge(Comparison([original.effects]).first(changed.effects))
        is_exact = agree(original, changed)
        self._judge_counts(original, changed, is_exact=is_exact and is_whole)
        again = [] if is_exact else [self.runs.original(plan)]
        if not is_exact:
            self._judge(self._structure(original, changed, again[0]))
        if not is_exact and _LEVELS[self.level] != "reduced":
            self.log("how far rounding goes")
            again += self.runs.perturbed(plan)
            verdict = Limits(original.tensors, [run.tensors for run in again]).judge(changed.tensors)
            if verdict.sameness == "close":
                self._at_most("close")
                self.furthest = max(self.furthest, verdict.ratio)
            else:
                place, _, detail = (verdict.reason or "").partition(": ")
                self._judge(Difference(kind="values", place=place, detail=detail))
        if is_whole:
            self.perturbed = [(original.effects, run.effects) for run in again[1:]] or self.perturbed
            own = [original.effects, *(run.effects for run in again[:1])]
            self._judge(self._comparison(own).first(changed.effects))

    def _structure(self, original: WholeRun, changed: WholeRun, again: WholeRun) -> Difference | None:
        """Other tensors at the same place, where the original reproduces its own."""
        for a, b, own in zip(original.tensors, changed.tensors, again.tensors):
            if (a.what, a.shape) != (b.what, b.shape) and a.is_like(own):
                detail = f"{b.what} {list(b.shape)} instead of {a.what} {list(a.shape)}"
                return Difference(kind="counts", place=a.place, detail=detail)
        return None

    def _judge_counts(self, original: WholeRun, changed: WholeRun, *, is_exact: bool) -> None:
        if original.account is None or changed.account is None:
            self._judge(self._in_counts(original, changed))
            return
        self._judge(accounts.first_difference(original.account, changed.account, to_the_bit=is_exact))
        if is_exact and accounts.draws_differ(original.account, changed.account):
            self.known_by.append("it draws other random numbers, which no result depends on")

    def _compare_effects(self) -> None:
        """Compare what the last unwatched runs have left behind; the original once more where that decides."""
        last = self.pairs[-1]
        originals = [pair.original.effects for pair in (own_pairs(self.pairs) if last.shift is None else [last])]
        changed = last.changed.effects
        comparison = self._comparison(originals)
        while (difference := comparison.first(changed)) is not None and self._may_vary(originals):
            originals.append(self.runs.original(reseeded(last.shift)).effects)
            comparison = self._comparison(originals)
        self._judge(difference)
        notes = [f"{name}: not compared, as the original's own runs differ in it" for name in comparison.unsteady]
        self.known_by += [note for note in dict.fromkeys(notes) if note not in self.known_by]

    def _may_vary(self, originals: Sequence[Effects]) -> bool:
        """Whether more runs of the original may show that it does not do the same each time, or by how much not."""
        if len(originals) == 1:
            return True
        first = self._comparison(originals[:1])
        return len(originals) < thresholds.RUNS_OF_SPREAD and any(first.first(other) for other in originals[1:])

    def _comparison(self, originals: Sequence[Effects]) -> Comparison:
        level = _LEVELS[self.level]
        # A figure that rounding can tip over goes as far as the change's own rounding does, not as any could.
        share = min(1.0, max(thresholds.LEAST_ROUNDING, thresholds.FIGURES_OVER_NUMBERS * self.furthest))
        size = share * rounding.SIZE if level == "close" else 0.0
        return Comparison(originals, self.perturbed, size=size, loose=level == "reduced")

    def _judge(self, difference: Difference | None) -> None:
        """Raise Ended for a difference that nobody allowed."""
        if difference is None:
            return
        if not self.options.allows(difference):
            raise Ended("different", f"it does not do the same: {difference}", first_difference=difference)
        if _LEVELS[self.level] != "reduced":
            self.known_by.append(f"differs, as allowed, from {difference} on")
        self._at_most("reduced")

    def _at_most(self, level: Sameness) -> None:
        self.level = max(self.level, _LEVELS.index(level))

    # ------------------------------------------------------------------ the answer

    def _words_of_tensors(self, original: WholeRun) -> str:
        exactness = {"exact": "bit for bit", "close": "but for rounding", "reduced": "not compared, as allowed"}
        counted = f" ({words})" if original.account and (words := accounts.in_words(original.account)) else ""
        return (
            f"inputs, outputs, losses, weights and optimizer state of whole runs, "
            f"{exactness[_LEVELS[self.level]]}{counted}"
        )

    def _proof(self, ended: Ended) -> Proof:
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
            sameness=_LEVELS[self.level] if is_same else None,
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
