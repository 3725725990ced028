"""One change that a remedy proposes, and what became of it in the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstall.optimize.payback import StartCost, epochs_to_pay, told
from unstall.optimize.source.files import Sources
from unstall.optimize.thresholds import MOST_EPOCHS_TO_PAY, MOST_S_TO_PAY
from unstall.records import remedies as records
from unstall.records.remedies import RemedyStatus, Sameness
from unstall.statistics import Ratio

if TYPE_CHECKING:
    import libcst as cst

    from unstall.optimize.comparison import PairedRuns
    from unstall.optimize.remedies.base import Remedy
    from unstall.optimize.sameness import ObservedTensor, Verdict
    from unstall.optimize.source.module import SourceModule


@dataclass(frozen=True)
class Lines:
    """Some lines of a file."""

    path: Path
    first: int
    last: int

    @classmethod
    def of(cls, path: Path, module: SourceModule, *nodes: cst.CSTNode) -> Lines:
        """From the first line of the first node to the last one of the last."""
        return cls(path, module.first_line(nodes[0]), module.last_line(nodes[-1]))

    def hold(self, path: Path | None, line: int) -> bool:
        """Whether a line of a file is among them."""
        return path == self.path and self.first <= line <= self.last


@dataclass(frozen=True)
class Proposal:
    """One change worth a trial, or advice that is only printed."""

    title: str
    """What is changed, for a person: ``num_workers=2 in train.py:152``."""
    predicted: float
    """Predicted speed-up of the step; 1 when the change may help and nothing says by how much."""
    because: str
    """What the prediction rests on."""
    sources: Sources | None = None
    """The sources with the change in them; None where it cannot be written and is only set at run time."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The same change for :mod:`unstall.child.trial.settings`; empty where only the source can hold it."""
    key: str = ""
    """Distinguishes the options of one remedy; the title where it is empty."""
    lines: Lines | None = None
    """The lines whose work it takes away or does otherwise; None where it is about no lines."""
    advice_only: bool = False
    """It is printed and never tried."""
    needs_revisits: bool = False
    """It pays only when samples are met again, from the second epoch on."""
    memoized_functions: tuple[str, ...] = ()
    """``file:function`` of what remembers its results: the comparison checks that it is asked only plain values."""
    compiles: bool = False
    """It compiles at the start of each run, and longest in the first."""
    keeps_files: bool = False
    """Parsed files are kept: the comparison parses them again each time, and what is kept must be the same."""
    batches_model_calls: bool = False
    """Calls of a model are made together: its rows are counted, and the comparison makes each call alone as well."""
    indexes_batches: bool = False
    """Samples of a batch are indexed at once: the comparison collates them one by one as well."""
    competes_for_cores: bool = False
    """Its best option changes with every other change: it may be tried again after one is kept."""


@dataclass
class Attempt:
    """A proposal of a remedy in the search, and what is known of it so far."""

    remedy: Remedy
    proposal: Proposal
    status: RemedyStatus = RemedyStatus.UNTRIED
    comparison: PairedRuns | None = None
    """The pairs of runs so far; None before the first trial."""
    speedup: Ratio | None = None
    """The speed-up as measured, fresh runs that confirm it included."""
    is_in_doubt: bool = False
    """Whether more pairs of runs could decide: then it may be tried again."""
    first_epoch: float | None = None
    """The speed-up of the first epoch, of what keeps samples for the later ones."""
    start_cost: StartCost | None = None
    """Of what compiles at the start of each run."""
    sameness: Sameness | None = None
    """How the same it computes, as measured; None where that was not asked or cannot be said."""
    observed: Sequence[ObservedTensor] = field(default=(), repr=False)
    """What the program computes with it and all that was kept before."""
    reason: str | None = None
    """Why it is not kept, for a person."""

    @property
    def id(self) -> tuple[str, str]:
        """The same change is not tried twice under the same conditions."""
        return self.remedy.name, self.proposal.key or self.proposal.title

    @property
    def promise(self) -> float:
        """The gain as far as it was measured, else as predicted."""
        return self.speedup.value if self.speedup else self.proposal.predicted

    @property
    def name(self) -> str:
        """The remedy and the change, for a person."""
        return f"{self.remedy.name}: {self.proposal.title}"

    def end(self, status: RemedyStatus, reason: str | None = None) -> None:
        """Settle what became of it."""
        self.status, self.reason = status, reason
        if status is not RemedyStatus.KEPT:
            self.observed = ()

    def is_as_expected(self, verdict: Verdict) -> bool:
        """Whether it computes what its remedy may; where it does not, that is its end."""
        expected = self.remedy.exactness
        is_close = self.remedy.never_exact and verdict.sameness == "exact"
        self.sameness = "close" if is_close else verdict.sameness
        if verdict.sameness in ("exact", "close") or (verdict.sameness == expected == "reduced"):
            return True
        if expected == "training-changing" and self.observed:
            return True
        self.end(RemedyStatus.NOT_EQUIVALENT, verdict.reason)
        return False

    def pays(self, first_epoch: float) -> bool:
        """Whether it wins back soon what its first epoch costs; where it does not, that is its end."""
        self.first_epoch = first_epoch
        assert self.speedup is not None
        epochs = epochs_to_pay(first_epoch, self.speedup.value)
        if epochs is not None and epochs <= MOST_EPOCHS_TO_PAY:
            return True
        self.end(RemedyStatus.SLOWER, told(first_epoch, self.speedup.value))
        return False

    def wins_back(self, cost: StartCost) -> bool:
        """Whether it wins back soon what each start costs; where it does not, that is its end."""
        self.start_cost = cost
        if cost.steps_to_pay * cost.before_s <= MOST_S_TO_PAY:
            return True
        self.end(RemedyStatus.SLOWER, cost.told())
        return False

    def _equivalent(self) -> bool | None:
        if self.sameness is None:
            return False if self.status is RemedyStatus.NOT_EQUIVALENT else None
        return self.sameness != "reduced"

    def record(self) -> records.TriedRemedy:
        """The entry in the report."""
        return records.TriedRemedy(
            name=self.name,
            exactness=self.remedy.exactness,
            kept=self.status is RemedyStatus.KEPT,
            status=self.status,
            speedup=self.speedup.value if self.speedup else None,
            ci95=(self.speedup.low, self.speedup.high) if self.speedup else None,
            predicted_speedup=self.proposal.predicted,
            first_epoch_speedup=self.first_epoch,
            start_s=self.start_cost.later_s if self.start_cost else None,
            sameness=self.sameness,
            equivalent=self._equivalent(),
            why_not=self.reason,
        )


def speedup_without(share: float, removed: float = 1.0) -> float:
    """Speed-up when ``removed`` of a ``share`` of the step goes away (Amdahl, on the main thread's critical path)."""
    remaining = 1 - min(0.99, max(0.0, share)) * removed
    return 1 / max(remaining, 0.01)
