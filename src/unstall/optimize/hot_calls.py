"""Changes of the calls of one kind that the stack samples fell in, function by function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import Part, hot_parts, share_on
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import proposals_by_file
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.product_uses import ProductUse, rewritten
from unstall.optimize.thresholds import LEAST_SHARE
from unstall.text.units import percent


@dataclass(frozen=True)
class HotCalls:
    """Calls of one kind, and what becomes of them."""

    found: Callable[[SourceModule, Part], Iterable[cst.CSTNode]]
    """Those in a function, or at the top level of a file."""
    changed: Callable[[SourceModule, Sequence[Any]], cst.Module]
    """The tree with these calls changed."""
    saves: float
    """Share of their time."""
    title: str
    """With the places ``{name}``, of the function, and ``{place}``, file and line."""
    because: str
    """With the places ``{name}`` and ``{share}``, of the step."""
    none: str
    """Why nothing is proposed, where no such call takes a good part of the step."""

    def proposals(self, context: RemedyContext) -> list[Proposal]:
        """One for each function. Raises NotApplicable where there is none."""
        return proposals_by_file(
            ((path, part, of_line) for (path, part), of_line in hot_parts(context).items()),
            partial(self._proposal, context),
            self.none,
        )

    def _proposal(self, context: RemedyContext, path: Path, part: Part, of_line: Mapping[int, float]) -> Proposal:
        module = context.sources.module(path)
        name = part.name.value if isinstance(part, cst.FunctionDef) else path.stem
        calls = list(self.found(module, part))
        lines = module.lines(*calls)
        share = share_on(of_line, lines)
        if share < LEAST_SHARE:
            raise NotApplicable(self.none)
        return Proposal(
            self.title.format(name=name, place=f"{path.name}:{min(lines)}"),
            speedup_without(share, self.saves),
            self.because.format(name=name, share=percent(share)),
            sources=context.sources.with_module(path, self.changed(module, calls)),
            key=context.key(path, module.full_name(part)),
            lines=Lines.of(path, module, *calls),
        )


def hot_products(
    found: Callable[[SourceModule, Part], Iterable[ProductUse]], runtime: str, saves: float, **words: str
) -> HotCalls:
    """Products that are made for one use, and what gives the same without them, with that module of the runtime.

    ``words``: ``title``, ``because`` and ``none``.
    """

    def changed(module: SourceModule, nodes: Sequence[cst.CSTNode]) -> cst.Module:
        part = module.enclosing(nodes[0], cst.FunctionDef) or module.tree
        return rewritten(module, list(found(module, part)), runtime)

    def nodes(module: SourceModule, part: Part) -> Iterable[cst.CSTNode]:
        return (node for each in found(module, part) for node in each.nodes)

    return HotCalls(nodes, changed, saves, **words)
