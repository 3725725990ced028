"""What a person asks a search for, and what it found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from unstall.optimize.diagnosis import Diagnosis
from unstall.optimize.payback import told
from unstall.optimize.proposal import Attempt
from unstall.optimize.trial_runner import Variant
from unstall.records.remedies import RemedyStatus
from unstall.statistics import Ratio


@dataclass(frozen=True)
class SearchOptions:
    """What the person asked for."""

    budget_s: float = 900.0
    worth: float = 0.05
    """The search stops when the best predicted gain is less than this."""
    allow: frozenset[str] = frozenset()
    """What may be kept beyond what computes the same: ``output-changing``, ``reduced``, ``training-changing``."""
    quick: bool = False
    """The search stops with the first change that is kept, whose trial is then the last comparison as well."""


@dataclass
class Result:
    """What the search found."""

    first: Diagnosis
    last: Diagnosis
    best: Variant = field(default_factory=Variant)
    attempts: list[Attempt] = field(default_factory=list)
    """Every change that was thought of, in the order in which it was first tried; then what was not tried."""
    total: Ratio | None = None
    """Original against changed, side by side, without instrumentation."""
    reproducible: bool = True
    """Whether two runs of the original agree bit for bit."""
    stopped_by: Literal["nothing left", "first kept", "budget", "interrupted"] = "nothing left"
    notes: list[str] = field(default_factory=list)
    inapplicable: list[str] = field(default_factory=list)
    """The notes on why remedies of the last verdict cannot be written: what a person may mend by hand."""
    other_cores: list[float] = field(default_factory=list)
    """Cores that other programs took during each trial."""

    def add(self, attempt: Attempt) -> None:
        """Add a change that is tried; it replaces earlier attempts at the same change that were not kept."""
        self.attempts = [
            earlier for earlier in self.attempts
            if earlier.id != attempt.id or earlier.status is RemedyStatus.KEPT
        ] + [attempt]  # fmt: skip

    @property
    def kept(self) -> list[Attempt]:
        """The changes that are kept, in the order in which they were found."""
        return [attempt for attempt in self.attempts if attempt.status is RemedyStatus.KEPT]

    @property
    def needs_revisits(self) -> bool:
        """Whether the total holds from the second visit of each sample on."""
        return any(attempt.proposal.needs_revisits for attempt in self.kept)

    @property
    def cost_of_first_epoch(self) -> str:
        """What the first visit of each sample costs, in words."""
        costs = [told(kept.first_epoch, kept.speedup.value) for kept in self.kept if kept.first_epoch and kept.speedup]
        return costs[0] if costs else "the first one still fills the cache"

    @property
    def costs_of_start(self) -> list[str]:
        """What compiling at the start of each run costs, in words."""
        return [f"{kept.remedy.name}: {kept.start_cost.told()}" for kept in self.kept if kept.start_cost]

    @property
    def batches_model_calls(self) -> bool:
        """Whether a kept change calls the model for many items at once, so that rows are counted and not steps."""
        return any(attempt.proposal.batches_model_calls for attempt in self.kept)
