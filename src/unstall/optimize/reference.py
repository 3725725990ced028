"""What the original program computes, and whether a changed one does the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unstall.optimize import equivalence
from unstall.optimize.case import Proposal
from unstall.optimize.equivalence import Noted, Unobservable
from unstall.optimize.trial import TrialFailed
from unstall.optimize.workshop import Arm, Workshop

_STEPS = 12
_TIMEOUT_S = 180.0


class Reference:
    """The first steps of the original; :meth:`observe` runs it, then :meth:`judge` compares."""

    def __init__(self, workshop: Workshop):
        self.workshop = workshop
        self.steps: list[Noted] = []
        self.own_difference = 0.0
        """By which two runs of the original differ."""

    def observe(self, kind: str) -> None:
        """Two runs of the original: what it computes, and whether it agrees with itself. Raises TrialFailed."""
        try:
            first, again = self._observe(Arm(), kind), self._observe(Arm(), kind)
        except Unobservable as error:
            raise TrialFailed(f"what the program computes could not be observed: {error}") from error
        self.steps = first
        self.own_difference = equivalence.own_difference(first, again)

    def judge(
        self, changed: Arm, kind: str, proposal: Proposal, kept: Sequence[Proposal]
    ) -> tuple[bool | None, str | None]:
        """Whether a change on top of those that were kept computes the same, and why not.

        None where it need not, as it is to change the training.
        """
        watched = [*kept, proposal]
        remembers = [one for each in watched for one in each.remembers]
        proven = remembers or any(one.needs_revisits or one.in_batches for one in watched)
        check = {"remembers": remembers, "tolerances": equivalence.TOLERANCES} if proven else None
        try:
            noted = self._observe(changed, kind, check=check)
        except Unobservable as error:
            return False, f"what it computes could not be compared: {error}"
        if proposal.exactness == "training-changing":
            return None, None
        # Kept close changes make the whole close: an exact one on top of them is compared with the same tolerance.
        exactness: Any = "exact" if all(one.exactness == "exact" for one in watched) else "close"
        judgement = equivalence.judge(
            self.steps, noted, exactness, own=self.own_difference,
            arithmetic=[one.arithmetic for one in watched if one.arithmetic],
        )  # fmt: skip
        why_not = None if judgement.equivalent else f"it computes something else: {judgement.why_not}"
        return why_not is None, why_not

    def _observe(self, arm: Arm, kind: str, **options: Any) -> list[Noted]:
        return equivalence.observe(self.workshop, arm, kind, _STEPS, timeout=_TIMEOUT_S, **options)
