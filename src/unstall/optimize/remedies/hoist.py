"""What a loop computes anew in every turn, and comes out the same each time, is computed once before it."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.ahead import changed_names, imported, paths_read
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.computing import NotSteady, check_calls
from unstall.optimize.shares import hot_lines
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "hoist"
AREA: Area = "compute"
EXACTNESS: Exactness = "exact"

_MIN_SHARE = 0.03
_REMOVED = 0.99
_MUTATING = {"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "add", "fill", "data",
             "resize", "backward", "grad", "setdefault", "popitem", "discard"}  # fmt: skip


def propose(case: Case) -> list[Proposal] | Unfit:
    """The statements of the program's own loops that the samples fell on."""
    shares: dict[tuple[Path, int], float] = {}
    reason = "no line of a loop that computes the same again takes a noticeable share"
    for path, line, share in hot_lines(case):
        shares[path, line] = shares.get((path, line), 0.0) + share
    for path, function, share in _functions(case):
        for line in _calls(case, path, function):
            shares[path, line] = max(shares.get((path, line), 0.0), share)
    found: list[Proposal] = []
    for (path, line), share in shares.items():
        if share < _MIN_SHARE:
            continue
        try:
            statement, loop = steady_statement(case.sources.text(path), line)
            sources = with_hoisted(case.sources, path, statement.lineno, loop.lineno)
        except (NotSteady, SourceError) as error:
            reason = f"{path.name}:{line}: {error}"
            continue
        found.append(
            Proposal(
                NAME, f"{ast.unparse(statement.targets[0])} computed once before the loop ({path.name}:{line})",
                EXACTNESS, predicted_without(share, _REMOVED),
                f"computing it in every turn takes {percent(share)} of the step", sources=sources,
                key=f"{path.name}:{ast.unparse(statement)}",
            )
        )  # fmt: skip
    return found or Unfit(reason)


def _functions(case: Case) -> list[tuple[Path, str, float]]:
    """(file, function, share) of what the samples of a file's functions come to, loops of it apart."""
    shares: dict[tuple[Path, str], float] = {}
    for path, line, share in hot_lines(case):
        function = _function_around(ast.parse(case.sources.text(path)), line)
        if function is not None:
            shares[path, function.name] = shares.get((path, function.name), 0.0) + share
    return [(path, name, share) for (path, name), share in shares.items()]


def _function_around(tree: ast.Module, line: int) -> ast.FunctionDef | None:
    holding = [node for node in tree.body if isinstance(node, ast.FunctionDef) and _holds(node, line)]
    return holding[0] if holding else None


def _calls(case: Case, path: Path, function: str) -> list[int]:
    """Lines of the file that call a function of it."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(case.sources.text(path)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function
    ]


def steady_statement(text: str, line: int) -> tuple[ast.Assign, ast.For | ast.While]:
    """(the assignment on a line, its loop), if it gives the same in every turn. Raises NotSteady."""
    tree = ast.parse(text)
    loops = [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While)) and _holds(node, line)]
    loop = max(loops, key=lambda node: node.lineno, default=None)
    statement = next((one for one in loop.body if _holds(one, line)), None) if loop is not None else None
    if loop is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        raise NotSteady("it is no plain assignment of a loop")
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not any(isinstance(node, ast.Call) for node in ast.walk(statement.value)):
        raise NotSteady("it calls nothing, or sets more than a name")
    scope = _scope(tree, loop)
    check_calls(text, tree, scope, statement.value)
    _check_names(tree, scope, loop, statement, target.id)
    return statement, loop


def _check_names(tree: ast.Module, scope: ast.AST, loop: ast.For | ast.While, statement: ast.Assign, name: str) -> None:
    """Nothing in the loop changes what it is computed from, or what comes out. Raises NotSteady."""
    others = [one for one in loop.body if one is not statement]
    changed = set(changed_names([*others, *([loop.target] if isinstance(loop, ast.For) else [])]))
    modules = imported(tree)
    for path in {one for one in paths_read(statement.value) if one.partition(".")[0] not in modules}:
        for one in changed:
            if path == one or path.startswith(one + ".") or one.startswith(path + "."):
                raise NotSteady(f"{one} may change in the loop")
    stores = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name
              and not isinstance(node.ctx, ast.Load)]  # fmt: skip
    if len(stores) != 1:
        raise NotSteady(f"{name} is set elsewhere")
    if any(_alters(node, name) for other in others for node in ast.walk(other)):
        raise NotSteady(f"{name} is changed in the loop")
    before = others[: loop.body.index(statement)]
    if any(isinstance(node, ast.Name) and node.id == name for other in before for node in ast.walk(other)):
        raise NotSteady(f"{name} is read before it is set")


def _alters(node: ast.AST, name: str) -> bool:
    """Whether a node changes the value of a name in place."""
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return _root(node) == name
    if isinstance(node, ast.Attribute) and _root(node) == name:
        return not isinstance(node.ctx, ast.Load) or node.attr.endswith("_") or node.attr in _MUTATING
    return isinstance(node, ast.keyword) and node.arg == "out" and _root(node.value) == name


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _scope(tree: ast.Module, loop: ast.AST) -> ast.AST:
    holding = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and loop in ast.walk(node)]
    return max(holding, key=lambda node: node.lineno, default=tree)


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def with_hoisted(sources: Sources, path: Path, line: int, loop_line: int) -> Sources:
    """The sources with the statement on a line moved before its loop. Raises SourceError."""
    found = rewrite.Found(sources.parse(path))
    statement = next((one for one in found.nodes(cst.SimpleStatementLine) if found.place(one).start.line == line), None)
    loops = [
        one for one in (*found.nodes(cst.For), *found.nodes(cst.While)) if found.place(one).start.line == loop_line
    ]
    if statement is None or len(statement.body) != 1 or not loops:
        raise SourceError("the statement was not found again")
    loop = loops[0]
    body = loop.body
    if not isinstance(body, cst.IndentedBlock) or statement not in body.body or len(body.body) < 2:
        raise SourceError("the loop has nothing else in it")
    rest = [one for one in body.body if one is not statement]
    comments = [one for one in statement.leading_lines if one.comment is not None]
    first = statement.with_changes(leading_lines=[*loop.leading_lines, *comments])
    changed = loop.with_changes(body=body.with_changes(body=rest), leading_lines=())
    return sources.with_module(path, rewrite.replaced(found.module, loop, cst.FlattenSentinel([first, changed])))
