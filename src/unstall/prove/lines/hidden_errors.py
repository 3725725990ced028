"""Lines of the change that would hide an error, and that no run reached: what they hide is not known.

A sample that cannot be read is left out by ``except OSError: continue``, and nobody is told; in a run in which all can
be read, nothing shows. A handler that the original has in the same words is none of the change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from unstall.prove.lines.sources import Change
from unstall.prove.lines.syntax import FUNCTIONS, LOOPS, called, words

_FOR_OTHER_VERSIONS = frozenset(("ImportError", "ModuleNotFoundError", "AttributeError", "StopIteration"))
"""What is caught where something is not there, which no run on this machine need show."""
_EXITS = ("__exit__", "__aexit__")


def first(change: Change, reached: frozenset[tuple[str, int]]) -> str | None:
    """In words, the first of them; None where there is none.

    ``reached``: (file, line) of those that a run has reached.
    """
    for source in change.sources:
        known = {ast.unparse(handler) for handler in _hiding(source.before)}
        for handler in sorted(_hiding(source.after), key=lambda node: node.lineno):
            is_missed = not isinstance(handler, ast.ExceptHandler) or (
                (source.path, handler.body[0].lineno) not in reached or _is_mixed(handler)
            )
            if handler.lineno in source.lines and is_missed and ast.unparse(handler) not in known:
                return f"no run had an error that {source.place(handler.lineno)} ({words(handler)}) would hide"
    return None


def _hiding(tree: ast.AST) -> Iterator[ast.ExceptHandler | ast.stmt | ast.Call]:
    """Handlers that raise nothing themselves, what is done under ``contextlib.suppress``, what leaves a ``finally`` or
    lets a context manager drop errors, and errors of other threads and tasks that are asked for instead of raised.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            raises = any(isinstance(below, ast.Raise) for statement in node.body for below in ast.walk(statement))
            if not raises and not _names(node.type) <= _FOR_OTHER_VERSIONS:
                yield node
        elif isinstance(node, (ast.With, ast.Call)) and _is_quiet(node):
            yield node
        elif isinstance(node, ast.Try):
            yield from (each for statement in node.finalbody for each in _leaving(statement))
        elif isinstance(node, FUNCTIONS) and node.name in _EXITS:
            yield from (each for each in _own(node) if isinstance(each, ast.Return) and _may_be_true(each.value))


def _is_mixed(handler: ast.ExceptHandler) -> bool:
    """Whether it catches what comes in every run along with errors: that it was reached says nothing of these."""
    return bool(_names(handler.type) & _FOR_OTHER_VERSIONS)


def _leaving(statement: ast.stmt) -> Iterator[ast.stmt]:
    """What leaves a ``finally``, and drops the error that has led there."""
    nodes = [statement, *_own(statement)]
    in_loops = {id(below) for node in nodes if isinstance(node, LOOPS) for below in ast.walk(node)}
    for node in nodes:
        if isinstance(node, ast.Return) or (isinstance(node, (ast.Break, ast.Continue)) and id(node) not in in_loops):
            yield node


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """All below it, but for what is in functions there."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*FUNCTIONS, ast.Lambda)):
            yield child
            yield from _own(child)


def _may_be_true(value: ast.expr | None) -> bool:
    return value is not None and not (isinstance(value, ast.Constant) and not value.value)


def _is_quiet(node: ast.With | ast.Call) -> bool:
    if isinstance(node, ast.Call):
        return _asks_for_error(node)
    return any(_is_suppress(item.context_expr) for item in node.items)


def _asks_for_error(call: ast.Call) -> bool:
    """``future.exception()``, ``gather(..., return_exceptions=True)``."""
    is_of_future = getattr(call.func, "attr", "") == "exception" and not (call.args or call.keywords)
    return is_of_future or any(word.arg == "return_exceptions" for word in call.keywords)


def _names(caught: ast.expr | None) -> set[str]:
    """The classes that are caught, without the modules that they are in; one that is no class for all."""
    each = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return {str(getattr(one, "attr", getattr(one, "id", ""))) for one in each}


def _is_suppress(expression: ast.expr) -> bool:
    if not isinstance(expression, ast.Call):
        return False
    return called(expression) == "suppress" and not set().union(*map(_names, expression.args)) <= _FOR_OTHER_VERSIONS
