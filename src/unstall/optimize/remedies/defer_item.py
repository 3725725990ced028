"""``running += loss.item()`` waits for the device in every step; the sum can stay there and be read where it is used.

It is summed in float64 and in the same order, as Python sums its floats: the number read is the same to the bit.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "defer-item"
AREA: Area = "communication"
EXACTNESS: Exactness = "exact"

_REMOVED = 0.7  # of the time that the host waits for the device


@dataclass(frozen=True)
class Sum:
    """A sum of numbers read from tensors, in a loop."""

    name: str
    line: int
    """Of ``name += tensor.item()``."""
    loop_line: int
    reads: tuple[tuple[int, int], ...]
    """(line, column) where the sum is read inside the loop."""


def propose(case: Case) -> list[Proposal] | Unfit:
    """The sums in the loops of the training step, all of a file at once."""
    if not case.measurement.model.device.startswith("cuda"):
        return Unfit("the model runs on no GPU: to read a number waits for nothing")
    share = case.share("sync")
    found: list[Proposal] = []
    files = dict.fromkeys(site.file for site in case.measurement.sites if site.seam == "~backward")
    for path in (case.user_file(name) for name in files):
        if path is None:
            continue
        lines = {site.line for site in case.measurement.sites
                 if site.seam == "~backward" and case.user_file(site.file) == path}  # fmt: skip
        try:
            sums = find(case.sources.text(path), lines)
            sources = deferred(case.sources, path, sums) if sums else None
        except SourceError:
            continue
        if sources is not None:
            found.append(
                Proposal(
                    NAME, f"{', '.join(one.name for one in sums)} summed on the device ({path.name}:{sums[0].line})",
                    EXACTNESS, predicted_without(share, _REMOVED),
                    f"waiting for the device takes {percent(share)} of the step",
                    sources=sources, key=path.name,
                )
            )  # fmt: skip
    return found or Unfit("no sum of numbers read from tensors was found that may be read later")


def find(text: str, lines: set[int]) -> list[Sum]:
    """The sums in the innermost loops around these lines that are read rarely, or only after the loop."""
    tree = ast.parse(text)
    found = []
    for loop in ast.walk(tree):
        if not isinstance(loop, (ast.For, ast.While)) or not any(_holds(loop, line) for line in lines):
            continue
        inner = [one for one in ast.walk(loop) if isinstance(one, (ast.For, ast.While)) and one is not loop]
        if any(_holds(one, line) for one in inner for line in lines):
            continue
        scope = _scope(tree, loop)
        for statement in loop.body:
            name = _summed(statement)
            one = _sum(scope, loop, statement, name) if name is not None else None
            if one is not None:
                found.append(one)
    return found


def _summed(statement: ast.stmt) -> str | None:
    """``name`` of ``name += tensor.item()``."""
    if not (isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add)):
        return None
    if not isinstance(statement.target, ast.Name) or not _is_item(statement.value):
        return None
    return statement.target.id


def _is_item(value: ast.expr) -> bool:
    """Whether it is ``tensor.item()`` of a name."""
    if not isinstance(value, ast.Call) or value.args or value.keywords or not isinstance(value.func, ast.Attribute):
        return False
    return value.func.attr == "item" and isinstance(value.func.value, ast.Name)


def _sum(scope: ast.AST, loop: ast.For | ast.While, statement: ast.stmt, name: str) -> Sum | None:
    """The sum, if it is a number before the loop and nothing reads it in every step."""
    if _is_shared(scope, name) or not _starts_as_number(scope, loop, name):
        return None
    reads = []
    own = set(ast.walk(statement))
    rarely = {node for one in loop.body if isinstance(one, ast.If) for part in (*one.body, *one.orelse)
              for node in ast.walk(part)}  # fmt: skip
    for node in ast.walk(loop):
        if not isinstance(node, ast.Name) or node.id != name or node in own:
            continue
        if node not in rarely:
            return None
        if isinstance(node.ctx, ast.Load):
            reads.append((node.lineno, node.col_offset))
    return Sum(name, statement.lineno, loop.lineno, tuple(reads))


def _is_shared(scope: ast.AST, name: str) -> bool:
    """Whether another function may see the name, or it is one of the module's seen from a function."""
    for node in ast.walk(scope):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return True
        inner = isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)) and node is not scope
        if inner and any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node)):
            return True
    return False


def _starts_as_number(scope: ast.AST, loop: ast.For | ast.While, name: str) -> bool:
    """Whether every plain assignment to the name is of a number, and one stands before the loop."""
    starts = [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in node.targets)
    ]
    plain = all(isinstance(one.value, ast.Constant) and isinstance(one.value.value, (int, float)) for one in starts)
    return plain and any(one.lineno < loop.lineno for one in starts)


def _scope(tree: ast.Module, loop: ast.AST) -> ast.AST:
    """The innermost function around a loop, or the module."""
    holding = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and loop in ast.walk(node)]
    return max(holding, key=lambda node: node.lineno, default=tree)


def _holds(node: ast.For | ast.While, line: int) -> bool:
    return node.lineno < line <= (node.end_lineno or 0)


# ------------------------------------------------------------------ writing it


def deferred(sources: Sources, path: Path, sums: list[Sum]) -> Sources:
    """The sources with the sums on the device, read where they are used and after the loop. Raises SourceError."""
    module = sources.parse(path)
    found = rewrite.Found(module)
    lines = {one.line: one.name for one in sums}
    reads = {(line, _characters(found.lines[line - 1], column)) for one in sums for line, column in one.reads}
    changed: dict[cst.CSTNode, Any] = {}
    for added in found.nodes(cst.AugAssign):
        if lines.get(found.place(added).start.line) == rewrite.dotted(added.target):
            value: Any = added.value
            text = f"{rewrite.code(found.module, value.func.value)}.detach().double()"
            changed[added] = added.with_changes(value=cst.parse_expression(text))
    for name in found.nodes(cst.Name):
        start = found.place(name).start if name in found.places else None
        if start is not None and (start.line, start.column) in reads:
            changed[name] = cst.parse_expression(f"float({name.value})")
    after: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
    config = found.module.config_for_parsing
    for loop in (*found.nodes(cst.For), *found.nodes(cst.While)):
        names = [one.name for one in sums if one.loop_line == found.place(loop).start.line]
        after[loop] = [cst.parse_statement(f"{name} = float({name})\n", config=config) for name in names]
    return sources.with_module(path, found.module.visit(_Changes(changed, after)))


def _characters(line: str, column: int) -> int:
    """A column in bytes of UTF-8 in characters."""
    return len(line.encode()[:column].decode(errors="replace"))


class _Changes(cst.CSTTransformer):
    """Nodes in the place of others, by identity; and statements after loops."""

    def __init__(self, changed: dict[cst.CSTNode, Any], after: dict[cst.CSTNode, list[cst.BaseStatement]]):
        self.changed, self.after = changed, after

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Any:  # type: ignore[override]
        if original_node in self.changed:
            return self.changed[original_node]
        if self.after.get(original_node):
            return cst.FlattenSentinel([updated_node, *self.after[original_node]])
        return super().on_leave(original_node, updated_node)  # type: ignore[type-var]
