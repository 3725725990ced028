"""The loops that take time, each as it can be rewritten for all turns at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_lines, share_in_libraries
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import proposals_of
from unstall.optimize.source.errors import NotApplicable, located
from unstall.optimize.source.loops import RewrittenLoop
from unstall.optimize.source.module import SourceModule
from unstall.optimize.thresholds import LEAST_SHARE_OF_ALL
from unstall.text.units import percent


def loop_proposals(
    context: RemedyContext,
    rewrite: Callable[[SourceModule, int], RewrittenLoop],
    *,
    written: str,
    removed: float,
    of_libraries: bool = True,
    otherwise: str,
) -> list[Proposal]:
    """A proposal for each loop around a line that takes time.

    Args:
        context: of the search.
        rewrite: the loop around a line of a module, rewritten; raises AnalysisRefused.
        written: how, for a person: ``with torch.vmap``.
        removed: share of the loop's time that is expected to go.
        of_libraries: whether that of the libraries goes, too, that the loop calls.
        otherwise: why there is none, where no line takes time.

    Raises:
        NotApplicable: for no loop.
    """
    lines = list(hot_lines(context))

    def proposal(place: tuple[Path, int]) -> Proposal:
        path, line = place
        module = context.sources.module(path)
        with located(f"{path.name}:{line}"):
            loop = rewrite(module, line)
        share = sum(share for file, at, share in lines if file == path and any(a <= at <= b for a, b in loop.lines))
        if share < LEAST_SHARE_OF_ALL:
            raise NotApplicable(f"the loop of {loop.function} takes {percent(share)} of the step")
        function = module.enclosing(loop.node, cst.FunctionDef) or module.tree
        in_libraries = 0.0
        if not of_libraries:
            in_libraries = share_in_libraries(context, path, {line for a, b in loop.lines for line in range(a, b + 1)})
        if share * (1 - in_libraries) < LEAST_SHARE_OF_ALL:
            raise NotApplicable(f"{percent(in_libraries)} of the loop of {loop.function} are libraries that it calls")
        return Proposal(
            f"the loop of {loop.function} ({path.name}:{module.first_line(loop.node)}) {written}",
            speedup_without(share * (1 - in_libraries), removed),
            f"the loop takes {percent(share)} of the step",
            sources=context.sources.with_module(path, loop.tree),
            lines=Lines.of(path, module, loop.node),
            key=context.key(path, module.full_name(function), loop.key),
        )

    return proposals_of(((path, line) for path, line, _ in lines), proposal, otherwise)
