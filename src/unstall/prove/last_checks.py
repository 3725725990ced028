"""What a change does where things go otherwise than in these runs: looked at where all else says that it is proven."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unstall.prove import faults, repeated, stress, thresholds
from unstall.prove.comparing import Comparer
from unstall.prove.runs import OriginalFailed, ProofEnded, Runs
from unstall.prove.timing import ProofPair
from unstall.records.proof import Difference


@dataclass(frozen=True)
class LastChecks:
    """Of one proof."""

    runs: Runs
    comparer: Comparer
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
        self._fail()
        self._repeat()

    def _stress(self, plan: Mapping[str, Any]) -> None:
        """Compare whether losses overflow where a model's outputs are large."""
        self.log("the first step of both with large outputs")
        try:
            original = self.runs.original({**plan, **stress.PLAN})
        except OriginalFailed:
            return
        changed = self.runs.changed({**plan, **stress.PLAN}, original.seconds)
        self.comparer.judge(stress.first_difference(original, changed), stress.WHERE)

    def _fail(self) -> None:
        """Compare how both end where something goes wrong."""
        self.log("how both end where something goes wrong")
        for fault in faults.faults_of(self.watched[0].original) if self.watched else ():
            original, changed = self.runs.failing(fault.plan)
            if original.timed_out:
                return
            if changed.timed_out:
                endless = Difference(kind="effects", place="end of the run", detail="it has none")
                self.comparer.judge(endless, fault.where)
            self.comparer.judge(faults.first_difference(original.effects, changed.effects), fault.where)
            self.comparer.known_by.append(f"exit code, and files that are there{fault.where}")

    def _repeat(self) -> None:
        """Compare runs that find what an earlier one has left, while threads beside the main one are held up."""
        first = self.pairs[0]
        if first.original.files is None or first.changed.files is None:
            self.comparer.known_by.append(repeated.TOO_MUCH)
            return
        self.log("how both run where an earlier run has left its files")
        changed = self.runs.repeated(self.runs.sides.changed, first.changed.files)
        if not repeated.is_as_usual(changed, first.changed):
            original = self.runs.repeated(self.runs.sides.original, first.original.files)
            self.comparer.compare_repeated(self.pairs, original, changed)
            if changed.outlived_s > thresholds.OUTLIVES_S >= original.outlived_s:
                raise ProofEnded("inconclusive", f"a process of it may go on after its end{repeated.WHERE}")
        self.comparer.known_by.append(f"exit code, standard output and files{repeated.WHERE}")
