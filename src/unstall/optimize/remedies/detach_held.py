"""A loss that is held from step to step with its whole autograd graph: the number is held, the graph is let go.

The gain is memory, not time: it is kept when memory no longer grows and the step takes no longer.
"""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit
from unstall.optimize.sources import SourceError, Sources

NAME = "detach-held"
AREA: Area = "memory"
EXACTNESS: Exactness = "exact"

_APPENDING = ("append", "appendleft", "add", "insert")
_ADDING = (cst.AddAssign, cst.SubtractAssign)


def propose(case: Case) -> list[Proposal] | Unfit:
    """The line that holds the graphs, where nothing goes backward through what it holds."""
    reason = "nothing was seen that holds autograd graphs from step to step"
    for finding in case.report.findings:
        if finding.pattern != "memory-growth" or finding.cause != "graph" or finding.culprit is None:
            continue
        path = case.user_file(finding.culprit.file)
        if path is None:
            reason = "what holds the graphs is not in the program's own code"
            continue
        line = finding.culprit.line
        try:
            sources = with_detached(case.sources, path, line)
        except SourceError as error:
            reason = str(error)
            continue
        evidence = finding.evidence[0] if finding.evidence else "memory grows"
        return [
            Proposal(
                NAME, f"what line {line} of {path.name} holds is detached from its graph", EXACTNESS,
                max(1.0, finding.headroom), evidence, sources=sources, frees=True, key=f"{path.name}:{line}",
            )
        ]  # fmt: skip
    return Unfit(reason)


def with_detached(sources: Sources, path: Path, line: int) -> Sources:
    """The sources with what a line adds, appends or stores detached. Raises SourceError where that may matter."""
    backward = goes_backward(sources.text(path), line)
    if backward is not None:
        raise SourceError(f"line {backward} of {path.name} may go backward through what line {line} holds")
    found = rewrite.Found(sources.parse(path))
    held = _held(found, line)
    if held is None:
        raise SourceError(f"line {line} of {path.name} does not hold a tensor in a way that is known")
    return sources.with_module(path, rewrite.replaced(found.module, held, detached(held)))


def detached(value: cst.BaseExpression) -> cst.BaseExpression:
    """The expression without its graph; of two that a condition chooses from, each that is no number."""
    if isinstance(value, cst.IfExp):
        return value.with_changes(body=detached(value.body), orelse=detached(value.orelse))
    if _is_number(value):
        return value
    simple = isinstance(value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or bool(value.lpar)
    base = value if simple else value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Call(cst.Attribute(base, cst.Name("detach")))


def _held(found: rewrite.Found, line: int) -> cst.BaseExpression | None:
    """What the statement on a line appends, adds or stores, when it is one expression."""
    for statement in found.nodes(cst.SimpleStatementLine):
        place = found.place(statement)
        if not place.start.line <= line <= place.end.line or len(statement.body) != 1:
            continue
        one = statement.body[0]
        if isinstance(one, cst.Expr) and isinstance(one.value, cst.Call):
            return _appended(one.value)
        if isinstance(one, cst.AugAssign) and isinstance(one.operator, _ADDING):
            return _expression(one.value)
        if isinstance(one, cst.Assign) and len(one.targets) == 1:
            return _assigned(found, one)
    return None


def _appended(call: cst.Call) -> cst.BaseExpression | None:
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _APPENDING or not call.args:
        return None
    last = call.args[-1]
    return None if last.star or last.keyword is not None else _expression(last.value)


def _assigned(found: rewrite.Found, assign: cst.Assign) -> cst.BaseExpression | None:
    """``kept[i] = loss``; of ``total = total + loss`` the whole sum, which no longer has a graph then."""
    target = assign.targets[0].target
    if isinstance(target, cst.Subscript):
        return _expression(assign.value)
    again = rewrite.code(found.module, target)
    if isinstance(assign.value, cst.BinaryOperation) and isinstance(assign.value.operator, (cst.Add, cst.Subtract)):
        if rewrite.code(found.module, assign.value.left) == again:
            return _expression(assign.value.right)
        if rewrite.code(found.module, assign.value.right) == again:
            return _expression(assign.value.left)
    return None


def _expression(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """A single expression: of a display, a number or a text, it is not known what of it is a tensor."""
    if isinstance(value, cst.IfExp):
        chosen = [one for one in (value.body, value.orelse) if not _is_number(one)]
        return value if chosen and all(map(_expression, chosen)) else None
    if _is_number(value):
        return None
    known = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BinaryOperation, cst.UnaryOperation)
    return value if isinstance(value, known) else None


def _is_number(value: cst.BaseExpression) -> bool:
    """``loss.item()``, ``float(loss)``, a literal."""
    if isinstance(value, cst.Call):
        method = value.func.attr.value if isinstance(value.func, cst.Attribute) else ""
        return method == "item" or rewrite.name_of(value) in ("float", "int", "len")
    return isinstance(value, (cst.Integer, cst.Float))


# ------------------------------------------------------------------ does anything go backward through it?


def goes_backward(text: str, line: int) -> int | None:
    """The line that goes backward through what a line holds, as far as names in the module tell; None if none does."""
    tree = ast.parse(text)
    scopes = _scopes(tree)
    held = {name for node in ast.walk(tree) for name in _holders(node, line, scopes)}
    while True:
        more = set(held)
        for node in ast.walk(tree):
            more |= _passed_on(node, held, scopes)
        if more == held:
            break
        held = more
    for node in ast.walk(tree):
        name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        if name in ("backward", "grad") and _mentions(node, held, scopes):
            return node.lineno  # type: ignore[attr-defined]
    return None


Scopes = dict[ast.AST, str]


def _scopes(tree: ast.Module) -> Scopes:
    """The function that each node is in."""
    found: Scopes = {}

    def walk(node: ast.AST, scope: str) -> None:
        for one in ast.iter_child_nodes(node):
            inner = f"{scope}.{one.name}:{one.lineno}" if isinstance(one, ast.FunctionDef) else scope
            found[one] = scope
            walk(one, inner)

    walk(tree, "")
    return found


def _key(node: ast.AST, scopes: Scopes) -> str | None:
    """What a name or an attribute is known by: a name in its function, an attribute anywhere."""
    if isinstance(node, ast.Name):
        return f"{scopes[node]} {node.id}"
    return f".{node.attr}" if isinstance(node, ast.Attribute) else None


def _holder(node: ast.expr) -> ast.expr:
    """The name or attribute that a chain of items and calls of methods hangs on."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _holders(node: ast.AST, line: int, scopes: Scopes) -> set[str]:
    """What the statement on a line adds to."""
    if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or node.lineno):
        return set()
    targets: list[ast.expr] = []
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        targets = [node.value.func.value]
    elif isinstance(node, ast.AugAssign):
        targets = [node.target]
    elif isinstance(node, ast.Assign):
        targets = node.targets
    keys = (_key(_holder(one), scopes) for one in targets)
    return {key for key in keys if key is not None}


def _mentions(node: ast.AST, held: set[str], scopes: Scopes) -> bool:
    """Whether an expression has what is held in it, other than as a plain number."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "detach"):
        return False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("float", "len", "int"):
        return False
    if _key(node, scopes) in held:
        return True
    if isinstance(node, ast.Call) and f"() {ast.unparse(node.func).rpartition('.')[2]}" in held:
        return True
    return any(_mentions(one, held, scopes) for one in ast.iter_child_nodes(node))


def _passed_on(node: ast.AST, held: set[str], scopes: Scopes) -> set[str]:
    """What else holds it after a statement: names that are set to it, a function that returns it."""
    value: ast.expr | None = None
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        value, targets = node.value, node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
        value, targets = node.value, [node.target]
    elif isinstance(node, (ast.For, ast.comprehension)):
        value, targets = node.iter, [node.target]
    elif isinstance(node, (ast.Return, ast.Yield)) and node.value is not None:
        if _mentions(node.value, held, scopes):
            name = scopes[node].rpartition(".")[2].partition(":")[0]
            return {f"() {name}"}
        return set()
    if value is None or not _mentions(value, held, scopes):
        return set()
    names = (one for target in targets for one in ast.walk(target) if isinstance(one, (ast.Name, ast.Attribute)))
    return {key for key in (_key(one, scopes) for one in names if isinstance(one.ctx, ast.Store)) if key is not None}
