"""What a remedy is: one object, in one file, with all that anybody needs to know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from unstall.optimize.source.errors import NotApplicable

if TYPE_CHECKING:
    from unstall.optimize.context import RemedyContext
    from unstall.optimize.proposal import Proposal

__all__ = ["Exactness", "NotApplicable", "Remedy"]

Exactness = Literal["exact", "close", "training-changing"]
"""How the results of the changed program are compared with the original's: bit for bit, within the tolerance of the
data type, or not at all, because the change is one of the training."""


class Remedy:
    """Base of all remedies. A new one sets the four attributes and gives ``propose``."""

    name: ClassVar[str]
    """As reports print it: "fused-optimizer"."""
    brief: ClassVar[str]
    """What it changes, in one line, for the documentation."""
    patterns: ClassVar[tuple[str, ...]]
    """The patterns of findings that it is a cure for."""
    exactness: ClassVar[Exactness]

    def propose(self, context: RemedyContext) -> list[Proposal]:
        """The changes of this kind that are worth a trial now. Raises NotApplicable where there are none."""
        raise NotImplementedError
