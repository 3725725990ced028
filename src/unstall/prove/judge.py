"""The proof: refuse, look at the first steps, run whole, watched and not, in turns, and end with one of five words.

What is plainly different is said as soon as it is seen. A program is watched (its numbers are written down) under its
own seeds and under others; it is timed where nothing watches, and those runs must leave the same behind.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any, Protocol

from unstall.optimize import thresholds as rounding
from unstall.optimize.sameness import Limits
from unstall.prove import accounts, refusals, thresholds
from unstall.prove.effects import Comparison, Effects
from unstall.prove.runner import WholeRun
from unstall.prove.trees import Files, Sides
from unstall.records import proof
from unstall.records.proof import Difference, Proof, ProofRatio, ProofVerdict
from unstall.records.remedies import Sameness
from unstall.statistics import Ratio, anytime

_SEED = 20260101
_RUNS_UNDER_OTHER_SEEDS = 2  # one of each side
_NOTHING_SEEN = "neither losses nor outputs of models were seen: what it leaves behind is compared alone"
_FIXED_SEEDS = "the program's seeds cannot be changed from outside: it was compared under its own alone"
_LEVELS: tuple[Sameness, ...] = ("exact", "close", "reduced")


class Runs(Protocol):
    """What :class:`unstall.prove.runner.Runner` does."""

    def run(self, files: Files, plan: Mapping[str, Any], *, timeout: float) -> WholeRun:
        """Run a side."""


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


class _Ended(Exception):
    """The proof has ended early, with a verdict and its reason."""

    def __init__(self, verdict: ProofVerdict, reason: str, **facts: Any):
        super().__init__(reason)
        self.verdict, self.reason, self.facts = verdict, reason, facts


@dataclass
class Judge:
    """One proof."""

    runner: Runs
    sides: Sides
    options: Options
    log: Callable[[str], None] = lambda line: None
    clock: Callable[[], float] = time.monotonic
    known_by: list[str] = field(default_factory=list)
    level: int = 0
    """How the same it is so far, in ``_LEVELS``."""
    pairs: list[tuple[WholeRun, WholeRun]] = field(default_factory=list)
    """Whole runs that nothing watches: of the original, and of the changed program."""
    watched: list[tuple[WholeRun, WholeRun]] = field(default_factory=list)
    perturbed: list[tuple[Effects, Effects]] = field(default_factory=list)
    """Of watched whole runs of the original: as it is, and off by one unit in the last place."""

    def prove(self) -> Proof:
        """Judge the change."""
        self.began = self.clock()
        try:
            self._refuse()
            kind = self._look()
            self._watch(kind)
            self._time()
            ended = self._conclude()
        except _Ended as early:
            ended = early
        return self._proof(ended)

    # ------------------------------------------------------------------ the parts of a proof

    def _refuse(self) -> None:
        if not any(True for _ in self.sides.differing):
            raise _Ended("refused", "there is nothing to judge: both sides are the same")
        touched = refusals.first(self.sides)
        if touched is not None:
            raise _Ended("refused", f"it changes what is measured: {touched}", first_difference=touched)

    def _look(self) -> str:
        """Compare the first steps, and find out what a step of this program is."""
        self.log("the first steps of both")
        plan = self._plan("optimizer", steps=int(thresholds.LOOK_STEPS))
        original = self._original(plan)
        if original.clock is None:
            kind = _other_kind(original)
            if not kind:
                return ""
            plan = self._plan(kind, steps=int(thresholds.LOOK_STEPS))
            original = self._original(plan)
        self._compare(plan, original, is_whole=False)
        return str(plan["clock"]["kind"])

    def _watch(self, kind: str) -> None:
        """Compare whole runs, under the program's seeds and under others."""
        self.log("whole runs of both, watched")
        plan = self._plan(kind)
        original = self._original(plan)
        self._compare(plan, original, is_whole=True)
        self.known_by.append(self._words_of_tensors(original) if original.tensors else _NOTHING_SEEN)
        for_rounding = 1 + rounding.PERTURBED_RUNS if _LEVELS[self.level] == "close" else 0
        self._need(original.seconds * (_RUNS_UNDER_OTHER_SEEDS + 2 * thresholds.LEAST_PAIRS + for_rounding))
        if not original.tensors:
            if not any(content.size for content in original.effects.contents.values()):
                raise _Ended("inconclusive", "the program computes, prints and writes nothing that could be compared")
            return
        self.log("the same under seeds that the change has not seen")
        shift = random.SystemRandom().randrange(1, 2**31)
        plan = self._plan(kind, shift=shift)
        other = self._original(plan)
        if _agree(original, other):
            self.known_by.append(_FIXED_SEEDS)
            return
        self._compare(plan, other, is_whole=True)
        self.known_by.append(f"under the program's seeds, and under those seeds changed by {shift}")

    def _time(self) -> None:
        """Time whole runs that nothing watches, in turns, until it is clear; compare what each leaves behind."""
        while len(self.pairs) < thresholds.MOST_PAIRS:
            longest = max((a.seconds + b.seconds for a, b in self.pairs), default=0.0)
            if len(self.pairs) >= thresholds.LEAST_PAIRS and longest > self._remaining():
                return
            turn = len(self.pairs) % 2
            self.log(f"pair {len(self.pairs) + 1} of whole runs")
            limit = self._limit()
            first = self._run(self.sides.changed if turn else self.sides.original, {}, limit)
            second = self._run(self.sides.original if turn else self.sides.changed, {}, limit)
            self.pairs.append((second, first) if turn else (first, second))
            self._compare_effects()
            ratio = self._ratio()
            if ratio is not None and (ratio.low > thresholds.LEAST_GAIN or ratio.high < thresholds.LEAST_GAIN):
                return

    def _conclude(self) -> _Ended:
        ratio = self._ratio()
        if ratio is None or ratio.low <= thresholds.LEAST_GAIN <= ratio.high:
            count = len(self.pairs)
            more_s = sum(a.seconds + b.seconds for a, b in self.pairs)  # as many pairs again
            return _Ended("inconclusive", f"{count} pairs of runs do not show whether it is faster", more_s=more_s)
        if ratio.high < thresholds.LEAST_GAIN:
            return _Ended("not-faster", f"whole runs are {ratio.value:.2f} times as fast")
        gained, watched = (_gain(pairs) for pairs in (self.pairs, self.watched))
        if self.watched and watched < thresholds.WATCHED_SHARE * gained:
            return _Ended(
                "inconclusive",
                f"it gains {gained:.1f} s where nothing watches it, and {watched:.1f} s where its numbers are "
                "compared: what was compared may not be what was timed",
            )
        return _Ended("proven", f"whole runs are {ratio.value:.2f} times as fast, and the results the same")

    # ------------------------------------------------------------------ comparing

    def _compare(self, plan: Mapping[str, Any], original: WholeRun, *, is_whole: bool) -> None:
        """Run the changed program under a plan and compare it with a run of the original. Raises _Ended."""
        changed = self._run(self.sides.changed, plan, self._limit(original.seconds))
        if is_whole:
            self.watched.append((original, changed))
        if changed.effects.status != original.effects.status:
            self._judge(Comparison([original.effects]).first(changed.effects))
        is_exact = _agree(original, changed)
        self._judge_counts(original, changed, is_exact=is_exact and is_whole)
        again = [] if is_exact else [self._original(plan)]
        if not is_exact:
            self._judge(self._structure(original, changed, again[0]))
        if not is_exact and _LEVELS[self.level] != "reduced":
            again += self._perturbed(plan)
            verdict = Limits(original.tensors, [run.tensors for run in again]).judge(changed.tensors)
            if verdict.sameness == "close":
                self._at_most("close")
            else:
                place, _, detail = (verdict.reason or "").partition(": ")
                self._judge(Difference(kind="values", place=place, detail=detail))
        if is_whole:
            self.perturbed = [(original.effects, run.effects) for run in again[1:]]
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
        if original.account is None:
            return
        if changed.account is None:
            self._judge(Difference(kind="effects", place="end of the run", detail="it ends in another way"))
            return
        self._judge(accounts.first_difference(original.account, changed.account, to_the_bit=is_exact))
        if is_exact and accounts.draws_differ(original.account, changed.account):
            self.known_by.append("it draws other random numbers, which no result depends on")

    def _perturbed(self, plan: Mapping[str, Any]) -> list[WholeRun]:
        """Runs of the original that are off by one unit in the last place; those that fail tell nothing."""
        self.log("how far rounding goes")
        runs = []
        for seed in range(int(rounding.PERTURBED_RUNS)):
            with suppress(OriginalFailed):
                runs.append(self._original({**plan, "perturb": {"seed": seed}}))
        return runs

    def _compare_effects(self) -> None:
        """Compare what the unwatched runs have left behind; the original once more where that decides."""
        originals = [a.effects for a, _ in self.pairs]
        changed = self.pairs[-1][1].effects
        if self._comparison(originals).first(changed) is None:
            return
        if len(originals) == 1:
            originals.append(self._original({}).effects)
        comparison = self._comparison(originals)
        self._judge(comparison.first(changed))
        for name in comparison.unsteady:
            note = f"{name}: not compared, as the original's own runs differ in it"
            if note not in self.known_by:
                self.known_by.append(note)

    def _comparison(self, originals: Sequence[Effects]) -> Comparison:
        level = _LEVELS[self.level]
        size = rounding.SIZE if level == "close" else 0.0
        return Comparison(originals, self.perturbed, size=size, loose=level == "reduced")

    def _judge(self, difference: Difference | None) -> None:
        """Raise _Ended for a difference that nobody allowed."""
        if difference is None:
            return
        if not self.options.allows(difference):
            raise _Ended("different", f"it does not do the same: {difference}", first_difference=difference)
        if _LEVELS[self.level] != "reduced":
            self.known_by.append(f"differs, as allowed, from {difference} on")
        self._at_most("reduced")

    def _at_most(self, level: Sameness) -> None:
        self.level = max(self.level, _LEVELS.index(level))

    # ------------------------------------------------------------------ runs and time

    def _plan(self, kind: str, *, steps: int | None = None, shift: int | None = None) -> dict[str, Any]:
        seed = {"seed": {"seed": _SEED, "shift": shift}}
        if not kind:
            return {**seed, "account": {}}
        return {
            **seed,
            "clock": {"kind": kind, "warmup": 0, "steps": steps, "seconds": None},
            "observe": {"whole": True},
            "account": {},
        }

    def _original(self, plan: Mapping[str, Any]) -> WholeRun:
        run = self._run(self.sides.original, plan, self._remaining())
        if run.effects.status and not plan.get("perturb"):
            last = f": {run.effects.last_line}" if run.effects.last_line else ""
            raise OriginalFailed(f"the original ends with exit code {run.effects.status}{last}")
        return run

    def _run(self, files: Files, plan: Mapping[str, Any], timeout: float) -> WholeRun:
        """Run a side. Raises _Ended when the budget is spent, or a changed program takes too long to be faster."""
        run = self.runner.run(files, plan, timeout=max(timeout, 0.0))
        if not run.timed_out:
            return run
        if files is self.sides.changed and self._remaining() > 0:
            raise _Ended("not-faster", f"it had not ended after {run.seconds:.0f} s, far beyond the original")
        raise _Ended("inconclusive", "the budget is spent", more_s=self.options.budget_s)

    def _limit(self, original_s: float | None = None) -> float:
        """Seconds that a run may take which is no slower by far than the original's."""
        known = [a.seconds for a, _ in (*self.watched, *self.pairs)] + ([original_s] if original_s else [])
        usual = thresholds.SLOWER * max(known) + thresholds.SLOWER_GRACE_S if known else math.inf
        return min(self._remaining(), usual)

    def _remaining(self) -> float:
        return self.options.budget_s - (self.clock() - self.began)

    def _need(self, seconds: float) -> None:
        """Raise _Ended where the budget will not do."""
        lacking = seconds - self._remaining()
        if lacking > 0:
            reason = f"whole runs take too long for this budget: about {lacking:.0f} s more are needed"
            raise _Ended("inconclusive", reason, more_s=lacking)

    def _ratio(self) -> Ratio | None:
        if len(self.pairs) < thresholds.LEAST_PAIRS:
            return None
        ratio = anytime([math.log(a.seconds / b.seconds) for a, b in self.pairs])
        return ratio if math.isfinite(ratio.high) else None

    # ------------------------------------------------------------------ the answer

    def _words_of_tensors(self, original: WholeRun) -> str:
        exactness = {"exact": "bit for bit", "close": "but for rounding", "reduced": "not compared, as allowed"}
        counted = f" ({words})" if original.account and (words := accounts.in_words(original.account)) else ""
        return (
            f"inputs, outputs, losses, weights and optimizer state of whole runs, "
            f"{exactness[_LEVELS[self.level]]}{counted}"
        )

    def _proof(self, ended: _Ended) -> Proof:
        ratio = self._ratio()
        is_same = ended.verdict in ("proven", "not-faster") or (ended.verdict == "inconclusive" and bool(self.watched))
        known_by = list(self.known_by)
        if self.pairs:
            known_by.append(
                f"exit code, standard output and {self._files()} of {len(self.pairs)} pairs of whole runs that nothing "
                "watches, timed from outside"
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
            seconds=_medians(self.pairs, lambda run: run.seconds),
            memory_bytes=_medians(self.pairs, lambda run: run.memory_bytes),
            break_even_steps=break_even(self.watched) if self.pairs else None,
            pairs=len(self.pairs),
            **ended.facts,
        )

    def _files(self) -> str:
        count = len(self.pairs[0][0].effects.contents) - 1
        return "one file" if count == 1 else f"{count} files"


class OriginalFailed(Exception):
    """The original cannot be run."""


def break_even(watched: Sequence[tuple[WholeRun, WholeRun]]) -> int | None:
    """Steps after which a slower start has paid off, by the clocks of watched runs, whose cost is the same in both.

    0 where the start is no slower; None where the steps are no faster, or were not seen.
    """
    if not watched or any(not run.clock or len(run.clock["times"]) < 3 for run in watched[-1]):
        return None
    (start, step), (other_start, other_step) = (
        (run.clock["times"][0] - run.clock["began"], median(_gaps(run.clock["times"])))  # type: ignore[index]
        for run in watched[-1]
    )
    if other_step >= step:
        return None
    return max(0, math.ceil((other_start - start) / (step - other_step)))


def _other_kind(run: WholeRun) -> str:
    """What counts as a step in a program whose run made none of an optimizer; nothing where nothing is seen of it."""
    account = run.account or {}
    return "forward" if account.get("calls") else "batch" if account.get("batches") else ""


def _gaps(times: Sequence[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]


def _agree(a: WholeRun, b: WholeRun) -> bool:
    """Whether two runs computed the same, bit for bit."""
    return len(a.tensors) == len(b.tensors) and all(x.equals(y) for x, y in zip(a.tensors, b.tensors))


def _gain(pairs: Sequence[tuple[WholeRun, WholeRun]]) -> float:
    """Seconds that a run of the changed program is shorter, median over pairs."""
    return median(a.seconds - b.seconds for a, b in pairs) if pairs else 0.0


def _medians(pairs: Sequence[tuple[WholeRun, WholeRun]], of: Callable[[WholeRun], float]) -> proof.Sides | None:
    if not pairs:
        return None
    return proof.Sides(original=median(of(a) for a, _ in pairs), changed=median(of(b) for _, b in pairs))
