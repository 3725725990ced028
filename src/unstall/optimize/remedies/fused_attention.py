"""Attention written out by hand, given to ``torch.nn.functional.scaled_dot_product_attention``."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.attention import Attention, find
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.shares import hot_lines
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "fused-attention"
AREA: Area = "compute"
EXACTNESS: Exactness = "close"
"""The fused operator adds in another order, and never makes the matrix of scores."""

_REMOVED, _REMOVED_SPREAD = 0.6, 0.9  # of the time of a module's own operators: as matrices, and by broadcasting
_MIN_SHARE = 0.03


def propose(case: Case) -> list[Proposal] | Unfit:
    """Each place where the formula stands in the program's own code."""
    found: list[Proposal] = []
    reason = "no attention written by hand was found in the program's own code"
    for path in _files(case):
        try:
            places = find(case.sources.text(path))
        except (SourceError, SyntaxError) as error:
            reason = str(error)
            continue
        for attention in places:
            share = share_of(case, path, attention)
            if share < _MIN_SHARE:
                reason = f"the attention in {attention.function} takes {percent(share)} of the step"
                continue
            try:
                sources = with_fused(case.sources, path, attention)
            except SourceError as error:
                reason = str(error)
                continue
            of = f"{attention.cls}.{attention.function}" if attention.cls else attention.function
            found.append(
                Proposal(
                    NAME, f"scaled_dot_product_attention in {of} ({path.name}:{attention.line})", EXACTNESS,
                    predicted_without(share, _REMOVED_SPREAD if attention.spread else _REMOVED),
                    f"the operators of {of} take {percent(share)} of the step",
                    sources=sources, key=f"{path.name}:{of}:{attention.line}",
                )
            )  # fmt: skip
    return found or Unfit(reason)


def _files(case: Case) -> list[Path]:
    """The program's files in which modules or samples were seen."""
    names = [*(module.file for module in case.measurement.modules), *(spot.file for spot in case.report.hotspots)]
    paths = [case.user_file(name) for name in dict.fromkeys(names)]
    return list(dict.fromkeys(path for path in paths if path is not None))


def share_of(case: Case, path: Path, attention: Attention) -> float:
    """Share of the step: of the modules of the class, without those inside them; or, outside of one, of its lines."""
    modules = case.measurement.modules
    total = sum(module.self_s for module in modules)
    own = sum(module.self_s for module in modules
              if module.type == attention.cls and Path(module.file).name == path.name)  # fmt: skip
    if own and total:
        return own / total * case.share("forward", "backward")
    forward = case.share("forward")
    lines = sum(share for file, line, share in hot_lines(case) if file == path and _holds(case, path, attention, line))
    return lines * (case.share("forward", "backward") / forward if forward else 1.0)


def _holds(case: Case, path: Path, attention: Attention, line: int) -> bool:
    for node in ast.walk(ast.parse(case.sources.text(path))):
        if isinstance(node, ast.FunctionDef) and node.lineno <= attention.line <= (node.end_lineno or 0):
            return node.lineno <= line <= (node.end_lineno or 0)
    return False


def with_fused(sources: Sources, path: Path, attention: Attention) -> Sources:
    """The sources with the statement that makes the result changed, and those that only led to it left out."""
    found = rewrite.Found(sources.parse(path))
    module = found.module
    config = module.config_for_parsing
    lines = {attention.line, *attention.unneeded}
    nodes = {
        found.place(node).start.line: node
        for kind in (cst.SimpleStatementLine, cst.If)
        for node in found.nodes(kind)
        if found.place(node).start.line in lines
    }
    if nodes.keys() != lines or any(
        isinstance(node, cst.SimpleStatementLine) and len(node.body) > 1 for node in nodes.values()
    ):
        raise SourceError(f"the attention in {attention.function} was not found again")
    old = nodes.pop(attention.line)
    assert isinstance(old, cst.SimpleStatementLine)
    new = cst.parse_statement(attention.statement, config=config)
    new = new.with_changes(leading_lines=old.leading_lines, trailing_whitespace=old.trailing_whitespace)
    changed = module.visit(_Swap(old, new, list(nodes.values())))
    if "torch.nn.functional." in attention.statement:
        changed = rewrite.with_import(changed, "torch")
    return sources.with_module(path, changed)


class _Swap(cst.CSTTransformer):
    """Puts one statement in the place of another, and takes others away."""

    def __init__(self, old: cst.CSTNode, new: cst.CSTNode, unneeded: list[cst.CSTNode]):
        self.old, self.new, self.unneeded = old, new, unneeded

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> object:  # type: ignore[override]
        if original_node is self.old:
            return self.new
        if any(original_node is node for node in self.unneeded):
            return cst.RemoveFromParent()
        return super().on_leave(original_node, updated_node)  # type: ignore[type-var]
