"""A Python loop over numbers, compiled by Numba: it may do one thing after the other, as array operations may not."""

from __future__ import annotations

from importlib.util import find_spec
from typing import ClassVar

from unstall.optimize.compiling import compiled
from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_loops import loop_proposals
from unstall.optimize.proposal import Proposal
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import COMPILED_LOOP_SAVES


class CompileLoop(Remedy):
    """The loops that the stack samples fell into, or into what they call, those that only compute with numbers."""

    name = "compile-loop"
    brief = "a Python loop that computes with numbers and lists of them is compiled by Numba"
    needs = "Numba installed; a loop in a function of your own of arithmetic, `math`, conditions, items and lists alone"
    patterns = ("input-bound", "host-bound", "environment-bound", "callback-bound")
    exactness = "exact"
    compiler: ClassVar[str] = "numba"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        proposals = loop_proposals(
            context,
            compiled,
            written="compiled by Numba",
            removed=COMPILED_LOOP_SAVES,
            of_libraries=False,
            otherwise="no loop over numbers takes a noticeable share",
        )
        if find_spec(self.compiler) is None:
            raise NotApplicable(f"{proposals[0].title} needs Numba: pip install numba")
        return proposals


REMEDY = CompileLoop()
