"""What torch.compile made of the program's functions, as torch itself says it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class GraphBreak(msgspec.Struct, frozen=True, kw_only=True):
    """A line at which a compiled function goes back to Python."""

    line: int
    reason: str = ""
    """Torch's, in a line; empty where the analysis that met it is not known any more."""


class CompiledFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A function that torch.compile compiled, with all that comes after its breaks."""

    function: str
    file: str
    line: int
    """The line on which it begins."""
    graphs: int = 1
    """Pieces that it was cut into: one, and one for each break that was met."""
    compilations: int = 1
    """How often any of them was compiled; torch keeps the last 64 of all functions."""
    reasons: Sequence[str] = ()
    """The guards for which it was compiled again, the most frequent first."""
    breaks: Sequence[GraphBreak] = ()
    given_up: str = ""
    """Why torch runs it, or a part of it, uncompiled from then on; empty where it does not."""

    @property
    def hindered(self) -> bool:
        """Whether it is anything but one graph that was compiled once."""
        return bool(self.reasons or self.breaks or self.given_up)
