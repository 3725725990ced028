"""What the original program computes, and whether a changed one does the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from unstall.optimize import equivalence
from unstall.optimize.comparison import TrialFailed
from unstall.optimize.equivalence import ObservedTensor, Unobservable
from unstall.optimize.proposal import Attempt
from unstall.optimize.trial_runner import Variant

_STEPS = 12


class Observe(Protocol):
    """Runs a variant and reads what it computes, see :func:`unstall.optimize.equivalence.observe`."""

    def __call__(
        self, variant: Variant, kind: str, steps: int, *, check: Mapping[str, Any] | None = ...
    ) -> list[ObservedTensor]: ...


class Reference:
    """The first steps of the original; :meth:`observe` runs it, then :meth:`judge` compares."""

    def __init__(self, observe: Observe):
        self.observe_variant = observe
        self.tensors: list[ObservedTensor] = []
        self.own_difference = 0.0
        """Largest relative difference between two runs of the original."""

    def observe(self, kind: str) -> None:
        """Run the original twice: what it computes, and whether it agrees with itself. Raises TrialFailed."""
        try:
            first = self.observe_variant(Variant(), kind, _STEPS)
            second = self.observe_variant(Variant(), kind, _STEPS)
        except Unobservable as error:
            raise TrialFailed(f"what the program computes could not be observed: {error}") from error
        self.tensors = first
        self.own_difference = equivalence.own_difference(first, second)

    def judge(self, changed: Variant, kind: str, attempts: Sequence[Attempt]) -> tuple[bool | None, str | None]:
        """Whether a variant computes the same as the original, and why not.

        ``attempts``: all changes that are in it, the new one last. None where the new one changes the training, so
        that the results need not be the same.
        """
        try:
            tensors = self.observe_variant(changed, kind, _STEPS, check=_check(attempts))
        except Unobservable as error:
            return False, f"what it computes could not be compared: {error}"
        if attempts[-1].remedy.exactness == "training-changing":
            return None, None
        # Kept close changes make the whole close: an exact one on top of them is compared with the same tolerance.
        exact = all(attempt.remedy.exactness == "exact" for attempt in attempts)
        exactness: Literal["exact", "close"] = "exact" if exact else "close"
        dtypes = [attempt.proposal.compute_dtype for attempt in attempts if attempt.proposal.compute_dtype]
        own = self.own_difference
        why_not = equivalence.difference_of(self.tensors, tensors, exactness, own=own, compute_dtypes=dtypes)
        return why_not is None, f"it computes something else: {why_not}" if why_not else None


def _check(attempts: Sequence[Attempt]) -> dict[str, Any] | None:
    """What the child's part ``check`` is to prove of these changes; None where they keep and batch nothing."""
    proposals = [attempt.proposal for attempt in attempts]
    memoized = [function for proposal in proposals for function in proposal.memoized_functions]
    if memoized or any(proposal.needs_revisits or proposal.batches_model_calls for proposal in proposals):
        return {"memoized": memoized, "tolerances": equivalence.TOLERANCES}
    return None
