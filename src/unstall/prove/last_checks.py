"""What a change does where things go otherwise than in these runs: looked at where all else says that it is proven."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unstall.prove import accounts, thresholds
from unstall.prove.comparing import Comparer
from unstall.prove.conditions import (
    ahead,
    colliding,
    constants,
    damaged,
    diverged,
    elsewhere,
    ends,
    faults,
    forking,
    limits,
    loading,
    repeated,
    spawning,
    stress,
)
from unstall.prove.conditions.other_sides import OtherSides
from unstall.prove.findings import Findings
from unstall.prove.left_behind.effects import Effects
from unstall.prove.left_behind.effects_comparison import EffectsComparison
from unstall.prove.lines.sources import Change
from unstall.prove.runner import WholeRun
from unstall.prove.runs import OriginalFailed, ProofEnded, Runs, UnstallFailed, reseeded
from unstall.prove.timing import ProofPair
from unstall.prove.trees import Files, Sides
from unstall.records.proof import Difference

_OF_LOADERS = (ahead, loading, forking)
"""What a program with a loader is put under, beside a worker that is no fork."""
_FIRST_STEP = 0.5  # of a whole run, its start included, that one takes which ends after its first step
_OF_CHANGED_ALONE = 4  # runs elsewhere, and over its own files and another training's, as long as nothing differs

_Compare = Callable[[Mapping[str, Any], Effects, Effects], Difference | None]
"""What two runs under a plan leave otherwise."""


def seconds_taken(original: WholeRun, changed_s: float) -> float:
    """How long these checks take as a rule: a run of each side for each row of their tables.

    What few changes or programs ask for is left out, so that no proof is given up which would have had the time: rows
    for texts alone, checksums, other constants and limits, and runs by which the original shows that it varies.

    Args:
        original: a whole run of it.
        changed_s: such a run of the changed program.
    """
    rows = 1.0 + len([*faults.faults_of(original)])  # to the end of a training that goes astray
    if original.clock is not None:
        rows += _FIRST_STEP * len(stress.STRESSES)
    if accounts.has_loader(original.account):
        rows += sum(not data.of_text for data in damaged.KINDS) + len((*_OF_LOADERS, spawning))
    return rows * (original.seconds + changed_s) + _OF_CHANGED_ALONE * changed_s


@dataclass(frozen=True)
class LastChecks:
    """Of one proof."""

    runs: Runs
    change: Change
    comparer: Comparer
    findings: Findings
    pairs: Sequence[ProofPair]
    """Whole runs that nothing watched."""
    watched: Sequence[ProofPair]
    log: Callable[[str], None]

    def make(self, plan: Mapping[str, Any] | None) -> None:
        """All of them. Raises ProofEnded.

        ``plan``: to watch the first step; None of a program that makes none.
        """
        if plan is not None:
            self._stress(plan)
            self._diverge()
        self._fail()
        if self._damage() and plan is not None:
            self._lengthen({"clock": plan["clock"]})
        self._meet()
        self._start_elsewhere()
        self._repeat()
        self._take_over()

    def _stress(self, plan: Mapping[str, Any]) -> None:
        """Compare what losses tell where a model's outputs are as in a training that goes astray."""
        for one in stress.STRESSES:
            self.log(f"the first step of both{one.where}")
            try:
                original = self.runs.original({**plan, **one.plan})
            except OriginalFailed:
                continue
            changed = self.runs.changed({**plan, **one.plan}, original.seconds)
            self.comparer.judge(stress.first_difference(original, changed, one), one.where)
            if stress.has_losses(original):
                self.findings.add(f"{one.compared} of the first step{one.where}")

    def _diverge(self) -> None:
        """Compare how both tell that a training has gone astray, to its end."""
        self.log(f"what both write{diverged.WHERE}")
        runs = self._failing(diverged.PLAN, diverged.WHERE)
        if runs is None:
            return
        original, changed = runs
        if changed.timed_out:
            raise ProofEnded("inconclusive", f"it does not end{diverged.WHERE}")
        self.comparer.judge(diverged.first_difference(original.effects, changed.effects), diverged.WHERE)
        reason = ends.otherwise(original, changed)
        if reason:
            raise ProofEnded("inconclusive", f"{reason}{diverged.WHERE}")
        self.findings.add(f"exit code, and how numbers that are none are spelled,{diverged.WHERE}")

    def _fail(self) -> None:
        """Compare how both end where something goes wrong."""
        self.log("how both end where something goes wrong")
        for fault in faults.faults_of(self.watched[0].original) if self.watched else ():
            runs = self._failing(fault.plan, fault.where)
            if runs is None:  # it may end well after the next fault: a killed program always does
                continue
            original, changed = runs
            if changed.timed_out:
                endless = Difference(kind="effects", place="end of the run", detail="it has none")
                self.comparer.judge(endless, fault.where)
            self.comparer.judge(faults.first_difference(original.effects, changed.effects, fault), fault.where)
            if fault.compares_files:
                self._compare_numbers(fault, original, changed)
            reason = faults.goes_on(original, changed, fault)
            if reason is not None:
                raise ProofEnded("inconclusive", reason)
            compared = "exit code, and lines and files that are there" if fault.compares_files else "exit code"
            self.findings.add(f"{compared}{fault.where}")

    def _failing(self, plan: Mapping[str, Any], where: str) -> tuple[WholeRun, WholeRun] | None:
        """A run of each side under a plan that may make it fail; None where the original does not end, which is noted.

        Raises ProofEnded when the budget is spent.
        """
        original = self.runs.may_fail(self.runs.sides.original, plan)
        if original.timed_out:
            self.findings.add(f"not compared{where}: the original does not end")
            return None
        return original, self.runs.may_fail(self.runs.sides.changed, plan)

    def _compare_numbers(self, fault: faults.Fault, original: WholeRun, changed: WholeRun) -> None:
        """What was saved by then must hold the same numbers, if it does so in the original once more."""
        if self.findings.sameness == "close":
            files = [faults.of_numbers(run.effects) for run in (original, changed)]
            self.comparer.judge(self.comparer.in_effects(fault.plan, *files, of=faults.of_numbers), fault.where)
            return
        difference = faults.other_numbers(original.effects, changed.effects)
        if difference is not None and self.findings.sameness == "exact":
            again = self.runs.may_fail(self.runs.sides.original, fault.plan)
            if faults.other_numbers(original.effects, again.effects) is None:
                self.comparer.judge(difference, fault.where)

    def _damage(self) -> bool:
        """Compare what both do with data that are not as they have been so far. Whether there are texts."""
        has_text = False
        for data in damaged.KINDS if self.watched and accounts.has_loader(self.watched[0].original.account) else ():
            if data.of_text and not has_text:
                continue
            original = self._original_under(data.plan, data.where)
            if original is None:
                continue
            has_text |= damaged.has_text(original)
            if data.is_borne_by(original):
                self._compare_with(original, data.plan, data.where, self._compare_of(data), data.excuse)
        return has_text

    def _original_under(self, plan: Mapping[str, Any], where: str) -> WholeRun | None:
        """A run of the original; None where unstall cannot have it so with this version of a library, which is noted.

        Of the changed program's run alone that would be the change's doing.
        """
        self.log(f"what both do{where}")
        try:
            return self.runs.may_fail(self.runs.sides.original, plan)
        except UnstallFailed as failed:
            self.findings.add(f"not compared{where}: unstall itself failed in it ({failed.failure})")
            return None

    def _compare_of(self, data: damaged.DamagedData) -> _Compare | None:
        if data.is_course:
            return self._if_exact
        return self.comparer.in_wording if data.of_text and not data.of_all else self.comparer.in_effects

    def _compare_with(
        self,
        original: WholeRun,
        plan: Mapping[str, Any],
        where: str,
        compare: _Compare | None,
        excuse: Callable[[WholeRun, WholeRun], str],
    ) -> None:
        """Run the changed program as the original was. Raises ProofEnded where it does something else.

        What the original does not do, it need not do.

        Args:
            original: the original's run.
            plan: of both.
            where: what is special about these runs.
            compare: what they leave; None for the exit code alone.
            excuse: says in words why the runs tell nothing; nothing where they do.
        """
        changed = self.runs.may_fail(self.runs.sides.changed, plan)
        excused = excuse(original, changed)
        if excused:
            self.findings.add(f"not compared{where}: {excused}")
            return
        reason = ends.otherwise(original, changed)
        if not reason and compare and not original.effects.status and self.findings.sameness != "reduced":
            difference = compare(plan, original.effects, changed.effects)
            reason = f"it does not do the same ({difference})" if difference is not None else ""
        if reason:
            raise ProofEnded("inconclusive", f"{reason}{where}")
        compared = "exit code, standard output and files" if compare else "exit code"
        self.findings.add(f"{compared}{where}")

    def _lengthen(self, plan: Mapping[str, Any]) -> None:
        """Compare how much memory both take more for one text that is very long: that of all others, if it is padded.

        ``plan``: ends a run after its first step.
        """
        self.log("what a very long sample takes")
        rises = []
        for files in (self.runs.sides.original, self.runs.sides.changed):
            usual, long = (self.runs.may_fail(files, {**plan, **more}) for more in ({}, damaged.LONGEST))
            if long.changed_data is None or any(run.effects.status or run.timed_out for run in (usual, long)):
                return
            rises.append(long.memory_bytes - usual.memory_bytes)
        reason = damaged.takes_more((rises[0], rises[1]))
        if reason:
            raise ProofEnded("inconclusive", reason)
        self.findings.add("memory with one sample 200 times as long as usual")

    def _meet(self) -> None:
        """Compare what both do in circumstances that this program does not meet, and others of its kind do."""
        if colliding.goes_by_checksums(self.change):
            self._compare_under(colliding.PLAN, colliding.WHERE, self.comparer.in_effects)
        sides = (self.watched[0].original, self.watched[0].changed) if self.watched else ()
        if sides and all(accounts.has_loader(side.account) for side in sides):
            for condition in _OF_LOADERS:
                self._compare_under(condition.PLAN, condition.WHERE, self.comparer.in_effects)
            self._compare_under(spawning.PLAN, spawning.WHERE, self._if_exact, may_fail=True)
        self._set_otherwise(constants.other_constants(self.change))
        self._set_otherwise(limits.smaller_limits(self.change), may_fail=True)

    def _set_otherwise(self, others: OtherSides | None, *, may_fail: bool = False) -> None:
        """Compare what both do with other numbers in their files, if there are any."""
        if others is not None:
            checks = self._over(others.sides)
            checks._compare_under({}, others.where, checks._if_exact, may_fail=may_fail)

    def _over(self, sides: Sides) -> LastChecks:
        """The same of these sides."""
        runs = self.runs.over(sides)
        return replace(self, runs=runs, comparer=replace(self.comparer, runs=runs))

    @property
    def _if_exact(self) -> _Compare | None:
        """How to compare a training that takes another course: where results are close, it may part from the other."""
        return self.comparer.in_effects if self.findings.sameness == "exact" else None

    def _compare_under(
        self, plan: Mapping[str, Any], where: str, compare: _Compare | None, *, may_fail: bool = False
    ) -> None:
        """Raise ProofEnded where the changed program does not do the same under a plan that the original bears.

        ``may_fail``: an error is an answer, too, as it is told.
        """
        original = self._original_under(plan, where)
        if original is not None and not (original.effects.status or original.timed_out):
            self._compare_with(original, plan, where, compare, ends.excuse_of_errors if may_fail else ends.no_excuse)

    def _start_elsewhere(self) -> None:
        """Compare where both write where they are started in another folder, if they write into theirs."""
        before, after = (elsewhere.below(run, Path.cwd()) for run in (self.pairs[0].original, self.pairs[0].changed))
        if not elsewhere.writes(after):
            return
        self.log("where both write that are started in another folder")
        sides = self.runs.sides
        changed = elsewhere.below(self._run(sides.changed, elsewhere.PLAN), elsewhere.FOLDER)
        difference = EffectsComparison([after]).first(changed)
        if difference is not None:
            original = elsewhere.below(self._run(sides.original, elsewhere.PLAN), elsewhere.FOLDER)
            if original.status:
                return
            if EffectsComparison([before]).first(original) is not None:
                difference = elsewhere.first_difference(original, changed)
            self.comparer.judge(difference, elsewhere.WHERE)
        self.findings.add(f"standard output and files in the working folder{elsewhere.WHERE}")

    def _repeat(self) -> None:
        """Compare runs that find what an earlier one has left, while threads beside the main one are held up."""
        first = self.pairs[0]
        if first.original.files is None or first.changed.files is None:
            self.findings.add(repeated.TOO_MUCH)
            return
        self.log("how both run where an earlier run has left its files")
        changed = self._run(repeated.over(self.runs.sides.changed, first.changed.files), repeated.PLAN)
        if not repeated.is_as_usual(changed, first.changed):
            original = self._run(repeated.over(self.runs.sides.original, first.original.files), repeated.PLAN)
            self.comparer.compare_repeated(self.pairs, original, changed, repeated.WHERE)
            if changed.outlived_s > thresholds.OUTLIVES_S >= original.outlived_s:
                raise ProofEnded("inconclusive", f"a process of it may go on after its end{repeated.WHERE}")
        self.findings.add(f"exit code, standard output and files{repeated.WHERE}")

    def _take_over(self) -> None:
        """Compare what runs leave that find the files of a training with other seeds, be it better or worse."""
        pairs = self.pairs[:2]
        if len({pair.shift for pair in pairs}) < 2 or any(pair.changed.files is None for pair in pairs):
            return
        self.log("what both leave where a training with other seeds has left its files")
        for this, other in (pairs, pairs[::-1]):
            difference = self._taken_over(self.runs.sides.changed, this.shift, this.changed, other.changed)
            if difference is None:
                continue
            if self._taken_over(self.runs.sides.original, this.shift, this.original, other.original) is None:
                self.comparer.judge(difference, repeated.OVER_ANOTHER)
            return
        self.findings.add(f"standard output and files{repeated.OVER_ANOTHER}")

    def _taken_over(self, files: Files, shift: int | None, usual: WholeRun, earlier: WholeRun) -> Difference | None:
        """What a side does not leave as in a clean folder, where it finds what an earlier training has left."""
        found = earlier.files or {}
        run = self._run(repeated.over(files, found), reseeded(shift))
        difference = EffectsComparison([usual.effects]).first(repeated.as_left(run, usual, found))
        if difference is None or EffectsComparison([usual.effects]).first(self._run(files, reseeded(shift)).effects):
            return None  # it does not leave the same twice
        return difference

    def _run(self, files: Files, plan: Mapping[str, Any]) -> WholeRun:
        """A run of a side. Raises ProofEnded."""
        return self.runs.run(files, plan, self.runs.remaining())
