"""Compare runs of the changed program with the original's, and know how much the same they are by all of them.

Numbers are judged by how far one unit in the last place carries the original's own; counts, words and files by whether
they are the same. What a person allowed to differ is noted, all else ends the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from unstall.optimize import thresholds as rounding
from unstall.optimize.sameness import Limits
from unstall.prove import accounts, more_outputs, renamed_state, stored, thresholds
from unstall.prove.findings import Findings
from unstall.prove.left_behind import echoes
from unstall.prove.left_behind.echoes import Echo
from unstall.prove.left_behind.effects import STDERR, Effects
from unstall.prove.left_behind.effects_comparison import EffectsComparison, words_differ
from unstall.prove.runner import WholeRun
from unstall.prove.runs import ProofEnded, Runs, agree, reseeded
from unstall.prove.timing import ProofPair, own_pairs
from unstall.records.proof import Difference


@dataclass
class Comparer:
    """Compares the runs of one proof."""

    runs: Runs
    allow: frozenset[str]
    """What may differ: ``reduced``, the values; ``training-changing``, the number of steps and samples too."""
    log: Callable[[str], None]
    findings: Findings
    """Of the proof."""
    rounding_learned: int = 0
    """How often more was learned of how far rounding goes, for runs that nothing watches."""
    perturbed: list[tuple[Effects, Effects]] = field(default_factory=list)
    """Watched whole runs of the original: as it is, and off by one unit in the last place."""

    @cached_property
    def echoed(self) -> Sequence[Echo]:
        """Settings of the change, which may be printed as they are."""
        return echoes.of_change(self.runs.sides)

    def compare(
        self, plan: Mapping[str, Any], original: WholeRun, changed: WholeRun, *, is_whole: bool, where: str = ""
    ) -> None:
        """Compare a run of each side under a plan. Raises ProofEnded.

        Args:
            plan: under which the original is run again where that decides.
            original: the original's run.
            changed: the changed program's.
            is_whole: whether the program ran to its end, so that what it leaves behind is compared too.
            where: what is special about these runs, in words that follow "not the same".
        """
        if changed.effects.status != original.effects.status:
            self.judge(EffectsComparison([original.effects]).first(changed.effects), where)
        changed = self._with_its_outputs(original, changed)
        renamed = renamed_state.between(original, changed)
        original, changed = (renamed_state.without(renamed, run) for run in (original, changed))
        if renamed:
            self.findings.add_once(renamed_state.NOTE)
        is_exact = agree(original, changed)
        self._judge_counts(original, changed, is_exact=is_exact and is_whole, where=where)
        again = [] if is_exact else [renamed_state.without(renamed, self.runs.original(plan))]
        if not is_exact:
            self.judge(_structure(original, changed, again[0]), where)
        if not is_exact and self.findings.sameness != "reduced":
            self.log("how far rounding goes")
            again += [renamed_state.without(renamed, run) for run in self.runs.perturbed(plan)]
            verdict = Limits(original.tensors, [run.tensors for run in again]).judge(changed.tensors)
            if verdict.sameness == "close":
                self.findings.rounded(verdict.ratio)
            elif verdict.says_nothing and not self.allow:
                raise ProofEnded("inconclusive", verdict.reason or "")
            else:
                place, _, detail = (verdict.reason or "").partition(": ")
                self.judge(Difference(kind="values", place=place, detail=detail), where)
        if is_whole:
            self.perturbed = [(original.effects, run.effects) for run in again[1:]] or self.perturbed
            own = [original.effects, *(run.effects for run in again[:1])]
            difference = self._comparison(own).first(changed.effects)
            if difference is not None and not again:
                own.append(self.runs.original(plan).effects)
                difference = self._comparison(own).first(changed.effects)
            self.judge(difference, where)
            self.judge(stored.first_difference(original, changed), where)
            if original.account and changed.account:
                self.judge(accounts.changed_at_the_end(original.account, changed.account), where)

    def compare_as_it_is(self, plan: Mapping[str, Any], original: WholeRun, changed: WholeRun) -> None:
        """Compare a run of each side with the program's seeds untouched: steps, calls, samples.

        Where all was the same to the bit so far, so must the numbers be here. Raises ProofEnded.
        """
        changed = self._with_its_outputs(original, changed)
        in_counts = _in_counts(original, changed)
        is_other = self.findings.sameness == "exact" and not agree(original, changed)
        if in_counts is None and not is_other:
            return
        again = self.runs.original(plan)
        if _in_counts(original, again) is None:
            self.judge(in_counts)
            if agree(original, again):
                self.judge(_in_values(original, changed) if is_other else None)
                return
        self.findings.add("under its own seeds the program does not do the same twice: numbers not compared as it is")

    def compare_effects(self, pairs: Sequence[ProofPair]) -> None:
        """Compare what the last of these unwatched runs have left behind; the original once more where that decides."""
        last = pairs[-1]
        originals = [pair.original.effects for pair in (own_pairs(pairs) if last.shift is None else [last])]
        changed = last.changed.effects
        comparison = self._comparison(originals)
        while (difference := comparison.first(changed)) is not None and self._may_vary(originals):
            originals.append(self.runs.original(reseeded(last.shift)).effects)
            comparison = self._comparison(originals)
        if difference is not None and difference.kind == "values" and self._learn_rounding(last):
            comparison = self._comparison(originals)
            difference = comparison.first(changed)
        self.judge(difference)
        for name in comparison.unsteady:
            self.findings.add_once(f"{name}: not compared, as the original's own runs differ in it")
        for name in comparison.masked:
            self.findings.add_once(f"{name}: compared without settings of the change that are printed there")

    def _learn_rounding(self, pair: ProofPair) -> bool:
        """Whether more is known of how far rounding goes in what such a run leaves, after some runs under its seeds.

        A weight that has next to no gradient goes anywhere, which few runs under other seeds need not show.
        """
        if self.findings.sameness != "close" or self.rounding_learned >= thresholds.ROUNDING_LEARNED:
            return False
        self.rounding_learned += 1
        self.log("how far rounding goes in what these runs leave")
        runs = self.runs.perturbed(reseeded(pair.shift))
        self.perturbed = [*self.perturbed, *((pair.original.effects, run.effects) for run in runs)]
        return bool(runs)

    def compare_repeated(self, pairs: Sequence[ProofPair], original: WholeRun, changed: WholeRun, where: str) -> None:
        """Compare runs over what an earlier run of each side has left; not where the original varies by itself.

        Args:
            pairs: runs in clean folders.
            original: the original's over an earlier one.
            changed: the changed program's.
            where: what is special about them.
        """
        first, *others = (pair.original.effects for pair in own_pairs(pairs))
        if not any(self._comparison([first]).first(other) for other in others):
            self.judge(self._comparison([original.effects]).first(changed.effects), where)

    def in_wording(self, plan: Mapping[str, Any], original: Effects, changed: Effects) -> Difference | None:
        """As :meth:`in_effects`, of words alone where results are close: no runs need tell how far figures go."""
        if self.findings.sameness == "exact":
            return self.in_effects(plan, original, changed)
        if EffectsComparison([original], loose=True).first(changed) is None:
            return None
        again = self.runs.may_fail(self.runs.sides.original, plan).effects
        return EffectsComparison([original, again], loose=True).first(changed)

    def in_effects(
        self,
        plan: Mapping[str, Any],
        original: Effects,
        changed: Effects,
        *,
        of: Callable[[Effects], Effects] = lambda effects: effects,
    ) -> Difference | None:
        """What a run leaves otherwise than the original's, if that leaves the same once more; both may fail.

        Args:
            plan: of the runs.
            original: what the original has left.
            changed: what the changed program has.
            of: what of it is compared, for more runs of the original.
        """
        comparison = self._comparison([original])
        difference = comparison.first(changed)
        if difference is not None and difference.kind == "values" and self.findings.sameness == "close":
            runs = self.runs.perturbed(plan)  # how far rounding goes depends on the data
            comparison = self._comparison([original], [(original, of(run.effects)) for run in runs])
            difference = comparison.first(changed)
        if difference is None:
            return None
        again = self.runs.may_fail(self.runs.sides.original, plan)
        return difference if comparison.first(of(again.effects)) is None else None

    def note_errors(self, pairs: Sequence[ProofPair]) -> None:
        """Say where other words go to stderr: logs of metrics do, and so do warnings that an honest change ends."""
        own = own_pairs(pairs)
        difference = (
            words_differ(STDERR, [pair.original.errors for pair in own], own[-1].changed.errors) if own else None
        )
        if difference is not None:
            self.findings.add(f"not judged: {difference}")

    def judge(self, difference: Difference | None, where: str = "") -> None:
        """Raise ProofEnded for a difference that nobody allowed."""
        if difference is None:
            return
        if not self._allows(difference):
            raise ProofEnded("different", f"it does not do the same{where}: {difference}", first_difference=difference)
        if self.findings.sameness != "reduced":
            self.findings.add(f"differs, as allowed, from {difference} on")
        self.findings.lower("reduced")

    def _allows(self, difference: Difference) -> bool:
        """Whether a difference is one that the person allowed; words printed, files and exit code never are."""
        return (difference.kind == "values" and bool(self.allow)) or (
            difference.kind == "counts" and "training-changing" in self.allow
        )  # fmt: skip

    def _judge_counts(self, original: WholeRun, changed: WholeRun, *, is_exact: bool, where: str) -> None:
        if original.account is None or changed.account is None:
            self.judge(_in_counts(original, changed), where)
            return
        self.judge(accounts.first_difference(original.account, changed.account, to_the_bit=is_exact), where)
        if is_exact and accounts.draws_differ(original.account, changed.account):
            self.findings.add_once("it draws other random numbers, which no result depends on")

    def _with_its_outputs(self, original: WholeRun, changed: WholeRun) -> WholeRun:
        """The changed run with those outputs of its models that the original's have, too."""
        its = more_outputs.without(original, changed)
        if its is not changed:
            self.findings.add_once(more_outputs.NOTE)
        return its

    def _may_vary(self, originals: Sequence[Effects]) -> bool:
        """Whether more runs of the original may show that it does not do the same each time, or by how much not."""
        if len(originals) == 1:
            return True
        first = self._comparison(originals[:1])
        return len(originals) < thresholds.RUNS_OF_SPREAD and any(first.first(other) for other in originals[1:])

    def _comparison(
        self, originals: Sequence[Effects], perturbed: Sequence[tuple[Effects, Effects]] = ()
    ) -> EffectsComparison:
        # A figure that rounding can tip over goes as far as the change's own rounding does, not as any could.
        share = min(1.0, max(thresholds.LEAST_ROUNDING, thresholds.FIGURES_OVER_NUMBERS * self.findings.furthest))
        size = share * rounding.SIZE if self.findings.sameness == "close" else 0.0
        loose = self.findings.sameness == "reduced"
        perturbed = [*self.perturbed, *perturbed]
        return EffectsComparison(originals, perturbed, size=size, loose=loose, echoed=self.echoed)


def _structure(original: WholeRun, changed: WholeRun, again: WholeRun) -> Difference | None:
    """Other tensors at the same place, where the original reproduces its own."""
    for a, b, own in zip(original.tensors, changed.tensors, again.tensors):
        if (a.what, a.shape) != (b.what, b.shape) and a.is_like(own):
            detail = f"{b.what} {list(b.shape)} instead of {a.what} {list(a.shape)}"
            return Difference(kind="counts", place=a.place, detail=detail)
    return None


def _in_counts(original: WholeRun, other: WholeRun) -> Difference | None:
    if original.account is None:
        return None
    if other.account is None:
        return Difference(kind="effects", place="end of the run", detail="it ends in another way")
    return accounts.first_difference(original.account, other.account, to_the_bit=False)


def _in_values(original: WholeRun, changed: WholeRun) -> Difference:
    """The first number that is another one, of runs that should agree to the bit."""
    pairs = zip(original.tensors, changed.tensors)
    first = next((a for a, b in pairs if not a.equals(b)), None)
    place = first.place if first else "end of the run"
    return Difference(kind="values", place=place, detail="other numbers under the program's own seeds alone")
