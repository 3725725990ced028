"""An element-wise Python loop over pixels or cells, as array operations that give the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_lines
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import NotApplicable, Remedy, proposals_of
from unstall.optimize.source.edit import replaced, statement
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.toplevel import with_definition
from unstall.optimize.vectorize import Vectorized, vectorize
from unstall.text.units import percent

_MIN_SHARE = 0.03
_REMOVED = 0.95  # of the loop's time: array operations take some tens of nanoseconds an element less, seldom nothing


class VectorizeLoop(Remedy):
    """The loops that the stack samples fell into, those that can be written with arrays."""

    name = "vectorize-loop"
    brief = "an element-wise Python loop over pixels or cells becomes array operations"
    needs = "a loop over ranges, in a file that imports NumPy, in which no turn needs another"
    patterns = ("input-bound", "host-bound", "environment-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        lines = list(hot_lines(context))
        return proposals_of(
            ((path, line) for path, line, _ in lines),
            lambda place: _proposal(context, *place, lines),
            "no loop over pixels or cells takes a noticeable share",
        )


def _proposal(context: RemedyContext, path: Path, line: int, lines: Sequence[tuple[Path, int, float]]) -> Proposal:
    """The loop around a line, as one of all the lines that take time."""
    module = context.sources.module(path)
    try:
        loop = vectorize(module, line)
    except AnalysisRefused as reason:
        raise NotApplicable(f"{path.name}:{line}: {reason}") from reason
    share = sum(share for file, at, share in lines if file == path and module.is_on(loop.loop, at))
    if share < _MIN_SHARE:
        raise NotApplicable(f"the loop of {loop.function} takes {percent(share)} of the step")
    return Proposal(
        f"the loop of {loop.function} ({path.name}:{module.first_line(loop.loop)}) as array operations",
        speedup_without(share, _REMOVED),
        f"the loop takes {percent(share)} of the step",
        sources=context.sources.with_module(path, with_arrays(module, loop)),
        key=f"{path.name}:{loop.function}:{module.code(loop.loop.iter)}",
    )


def with_arrays(module: SourceModule, loop: Vectorized) -> cst.Module:
    """The tree with the loop replaced."""
    statements = [statement(module.tree, source) for source in loop.statements]
    statements[0] = statements[0].with_changes(leading_lines=loop.loop.leading_lines)
    tree = replaced(module.tree, loop.loop, *statements)
    return with_definition(tree, *(statement(module.tree, source) for source in loop.definitions))


REMEDY = VectorizeLoop()
