"""What a remedy is: one object, in one file, with all that anybody needs to know of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from unstall.optimize.source.errors import NotApplicable, located

if TYPE_CHECKING:
    from unstall.optimize.context import RemedyContext
    from unstall.optimize.proposal import Proposal
    from unstall.optimize.source.files import Sources

T = TypeVar("T")
P = TypeVar("P")

Exactness = Literal["exact", "close", "output-changing", "reduced", "training-changing"]
"""What is expected of the changed program's results: the original's bit for bit, the same but for rounding, the same
while less of them is logged, drawn or saved, or of less precision; or not to be compared, because the change is one of
the training. What they are is measured."""


class Remedy:
    """Base of all remedies. A new one sets the attributes and gives ``propose``."""

    name: ClassVar[str]
    """The name that reports print: "fused-optimizer"."""
    brief: ClassVar[str]
    """What the remedy changes, in one line for the documentation."""
    needs: ClassVar[str] = ""
    """What the program must have for it to apply, in half a line, for the documentation."""
    patterns: ClassVar[tuple[str, ...]]
    """The patterns of findings that it is a cure for."""
    exactness: ClassVar[Exactness]
    rounds_otherwise: ClassVar[bool] = True
    """Whether its changes can do no more by chance than round otherwise: what is off under one seed, in a later step,
    and close under another is close."""
    never_exact: ClassVar[bool] = False
    """Whether what differs may come after more steps than are compared, or go where nothing is: what is compared may be
    equal, and is not called exact."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        """The changes of this kind that are worth a trial now. Raises NotApplicable where there are none."""
        raise NotImplementedError


def in_source(write: Callable[[], tuple[Sources, str]], at_run_time: str) -> tuple[Sources | None, str]:
    """What ``write`` writes, and where; no sources and ``at_run_time`` where a change can only be set at run time."""
    with suppress(NotApplicable):
        return write()
    return None, at_run_time


def proposals_of(candidates: Iterable[T], propose: Callable[[T], Proposal], otherwise: str) -> list[Proposal]:
    """What ``propose`` makes of each candidate that it applies to, once for each key.

    Raises NotApplicable where that is none of them: with the last reason, or ``otherwise`` where there is no candidate.
    """
    proposals: dict[str, Proposal] = {}
    reason = NotApplicable(otherwise)
    for candidate in candidates:
        try:
            proposal = propose(candidate)
        except NotApplicable as error:
            reason = error
        else:
            proposals.setdefault(proposal.key, proposal)
    if not proposals:
        raise reason
    return list(proposals.values())


def proposals_by_file(
    candidates: Iterable[tuple[Any, ...]], propose: Callable[..., Proposal], otherwise: str
) -> list[Proposal]:
    """The same of candidates whose first item is their file: its name is put before the reason for a refusal."""

    def of_candidate(candidate: tuple[Any, ...]) -> Proposal:
        with located(candidate[0].name):
            return propose(*candidate)

    return proposals_of(candidates, of_candidate, otherwise)


def first_of(candidates: Iterable[T], make: Callable[[T], P], otherwise: str) -> P:
    """What ``make`` makes of the first candidate that it applies to. Raises NotApplicable as :func:`proposals_of`."""
    reason = NotApplicable(otherwise)
    for candidate in candidates:
        try:
            return make(candidate)
        except NotApplicable as error:
            reason = error
    raise reason
