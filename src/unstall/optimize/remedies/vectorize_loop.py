"""An element-wise Python loop over pixels or cells, as array operations that give the same bits."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.shares import hot_lines
from unstall.optimize.sources import SourceError, Sources
from unstall.optimize.vectorize import NotVectorizable, Vectorized, vectorize
from unstall.text.units import percent

NAME = "vectorize-loop"
AREA: Area = "compute"
EXACTNESS: Exactness = "exact"

_MIN_SHARE = 0.03
_REMOVED = 0.95  # of the loop's time: array operations take some tens of nanoseconds an element less, seldom nothing


def propose(case: Case) -> list[Proposal] | Unfit:
    """The loops that the stack samples fell into, those that can be written with arrays."""
    found: list[Proposal] = []
    reasons: list[str] = []
    seen: set[tuple[Path, int]] = set()
    lines = list(hot_lines(case))
    for path, line, _ in lines:
        try:
            text = case.sources.text(path)
            loop = vectorize(text, line)
            if (path, loop.first_line) in seen:
                continue
            seen.add((path, loop.first_line))
            total = sum(s for p, one, s in lines if p == path and loop.first_line <= one <= loop.last_line)
            if total < _MIN_SHARE:
                reasons.append(f"the loop of {loop.function} takes {percent(total)} of the step")
                continue
            found.append(_proposal(case, path, loop, total))
        except (NotVectorizable, SourceError) as error:
            reasons.append(f"{path.name}:{line}: {error}")
    return found or Unfit(reasons[0] if reasons else "no loop over pixels or cells takes a noticeable share")


def _proposal(case: Case, path: Path, loop: Vectorized, share: float) -> Proposal:
    return Proposal(
        NAME,
        f"the loop of {loop.function} ({path.name}:{loop.first_line}) as array operations",
        EXACTNESS,
        predicted_without(share, _REMOVED),
        f"the loop takes {percent(share)} of the step",
        sources=with_arrays(case.sources, path, loop),
        key=f"{path.name}:{loop.function}",
    )


def with_arrays(sources: Sources, path: Path, loop: Vectorized) -> Sources:
    """The sources with the loop replaced. Raises SourceError."""
    found = rewrite.Found(sources.parse(path))
    node = next((one for one in found.nodes(cst.For) if found.place(one).start.line == loop.first_line), None)
    if node is None:
        raise SourceError(f"the loop of {loop.function} was not found again")
    config = found.module.config_for_parsing
    statements = [cst.parse_statement(source, config=config) for source in loop.statements]
    statements[0] = statements[0].with_changes(leading_lines=node.leading_lines)
    module = rewrite.replaced(found.module, node, cst.FlattenSentinel(statements))
    for definition in reversed(loop.definitions):
        module = rewrite.with_definition(module, definition)
    return sources.with_module(path, module)
