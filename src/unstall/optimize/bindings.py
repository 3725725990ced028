"""What the names of a function and of its module stand for, as far as the syntax tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from unstall.optimize.purity import names as names_of

_PLAIN_CALLS = (
    "open", "str", "repr", "int", "float", "bool", "round", "len", "os.path.", "Path", "pathlib.Path", "csv.",
    "SummaryWriter",
)  # fmt: skip
"""What these make holds no object of the program's that changes; what they are given is used for its value."""


def parents_of(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """By node: the one it stands in."""
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def above(parents: dict[ast.AST, ast.AST], node: ast.AST) -> Iterator[ast.AST]:
    """What a node stands in, the nearest first."""
    while node in parents:
        node = parents[node]
        yield node


def arguments(function: ast.FunctionDef) -> list[ast.arg]:
    """All parameters of a function."""
    given = function.args
    more = [one for one in (given.vararg, given.kwarg) if one is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *more]


def names_made(function: ast.AST) -> set[str]:
    """Names that a function binds itself: assignments, loops, imports, exceptions, inner functions and their own."""
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(one.asname or one.name).partition(".")[0] for one in node.names}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.FunctionDef) and node is not function:
            found.add(node.name)
    return found


def aliases(function: ast.FunctionDef, given: set[str]) -> set[str]:
    """Local names that may stand for something the function was given, or for a part of it."""
    found: set[str] = set()
    while True:
        more = set()
        for node in ast.walk(function):
            for target, value in assignments(node):
                if not is_new(value, given | found):
                    more |= set(names_of([target], ast.Store))
        if more <= found:
            return found
        found |= more


def assignments(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """(target, value) of an assignment, a loop, a comprehension or a ``with``."""
    if isinstance(node, ast.Assign):
        return [(target, node.value) for target in node.targets]
    if isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
        return [(node.target, node.value)]
    if isinstance(node, (ast.For, ast.comprehension)):
        return [(node.target, node.iter)]
    if isinstance(node, ast.withitem) and node.optional_vars is not None:
        return [(node.optional_vars, node.context_expr)]
    return []


def is_new(value: ast.expr, given: set[str]) -> bool:
    """Whether an expression makes a value of its own, whatever is done to it later."""
    if isinstance(value, (ast.Constant, ast.JoinedStr, ast.BinOp, ast.UnaryOp, ast.Compare)):
        return True
    if isinstance(value, (ast.ListComp, ast.SetComp, ast.DictComp, ast.List, ast.Dict, ast.Set)):
        return True
    if isinstance(value, ast.Tuple):
        return all(is_new(one, given) for one in value.elts)
    if isinstance(value, ast.Call) and ast.unparse(value.func).startswith(_PLAIN_CALLS):
        return True
    return not any(isinstance(one, ast.Name) and one.id in given for one in ast.walk(value))


def only_its_value(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a number, a path or a text is all that is asked of a name, so that it can be no object that changes."""
    parent = parents.get(node)
    if isinstance(parent, (ast.BinOp, ast.Compare, ast.FormattedValue, ast.UnaryOp)):
        return True
    return (
        isinstance(parent, ast.Call) and node is not parent.func and ast.unparse(parent.func).startswith(_PLAIN_CALLS)
    )


def root(node: ast.expr) -> tuple[str, str | None]:
    """The name that a chain of attributes, items and calls begins with, and its first attribute."""
    first = None
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(node, ast.Attribute):
            first = node.attr
        node = node.func if isinstance(node, ast.Call) else node.value
    return (node.id, first) if isinstance(node, ast.Name) else ("", first)


def bound_once_for_all(tree: ast.Module) -> Iterator[str]:
    """Names of modules, functions, classes, and constants set once at module level."""
    set_once: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(tree):
        for target, value in assignments(node):
            for name in names_of([target], ast.Store):
                set_once.setdefault(name, []).append(value)
    for name, values in set_once.items():
        if len(values) == 1 and isinstance(values[0], ast.Constant):
            yield name
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name not in set_once:
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((one.asname or one.name).partition(".")[0] for one in node.names)


def module_variables(tree: ast.Module) -> Iterator[str]:
    """Names that module level sets outside of loops, once."""
    seen: dict[str, int] = {}
    for node in ast.walk(tree):
        for target, _ in assignments(node):
            for name in names_of([target], ast.Store):
                seen[name] = seen.get(name, 0) + 1
    for node in tree.body:
        for target, _ in assignments(node) if not isinstance(node, ast.For) else []:
            if isinstance(target, ast.Name) and seen[target.id] == 1:
                yield target.id


def dotted(node: ast.expr) -> str:
    """``a.b.c`` for names and attributes, '' for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""
