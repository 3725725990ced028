"""Which statement hands another one what it works on, as the source is written.

Names are followed through assignments in the order of the lines; what is kept in attributes or changed in place is not.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Iterator

from unstall.diagnose import source

_COUNTERS = frozenset({"range", "trange", "count", "repeat", "cycle"})
_THROUGH = frozenset({"enumerate", "tqdm", "track", "zip"})
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@functools.lru_cache(maxsize=1024)
def hands_batch(file: str, line: int, call_line: int) -> bool:
    """Whether a line makes the batch that the call on a later line, of the model or of a step, works on.

    A loop over an iterable gets its batch from that: the line of its head, and no other. In a loop that counts or goes
    on while something holds, it is each line whose result reaches the call. A file that does not parse says no.
    """
    tree = _tree(file)
    if tree is None or line >= call_line:
        return False
    loop = _innermost(tree, _LOOPS, line, call_line)
    if loop is None:
        return False
    if isinstance(loop, (ast.For, ast.AsyncFor)) and not _counts(loop.iter):
        return source.is_head(loop, line)
    return _reaches(loop, line, call_line)


@functools.lru_cache(maxsize=1024)
def waiting_calls(file: str, lines: frozenset[int]) -> frozenset[int]:
    """Of the calls on these lines, of one model, those that work on what one of them gave: they cannot be one call.

    In the function around each, directly or through other names, in this turn of a loop or the one before. A file that
    does not parse says none.
    """
    tree = _tree(file)
    if tree is None:
        return frozenset()
    around = {line: _innermost(tree, _FUNCTIONS, line, line) or tree for line in lines}
    return frozenset(
        line
        for line, function in around.items()
        if _works_on_results(function, line, {other for other in lines if around[other] is function})
    )


def _works_on_results(function: ast.AST, call_line: int, calls: Collection[int]) -> bool:
    """Whether the innermost calls of the statement on ``call_line`` read a name that the results of ``calls`` reach."""
    statements = list(_statements(function))
    made: set[str] = set()
    while True:
        known = len(made)
        for first, last, parts in statements:
            names = [node for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)]
            is_call = any(first <= line <= last for line in calls)
            if is_call or any(name.id in made for name in names if isinstance(name.ctx, ast.Load)):
                made |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
        if len(made) == known:
            break
    given = [
        name.id
        for first, last, parts in statements
        if first <= call_line <= last
        for part in parts
        for call in _innermost_calls(part)
        for name in _arguments(call)
    ]
    return not made.isdisjoint(given)


def _innermost_calls(part: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(part):
        if isinstance(node, ast.Call) and not any(
            isinstance(inner, ast.Call) for inner in ast.walk(node) if inner is not node
        ):
            yield node


def _arguments(call: ast.Call) -> Iterator[ast.Name]:
    """Names that a call reads, but for that of what is called."""
    for node in ast.walk(call):
        if isinstance(node, ast.Name) and node is not call.func:
            yield node


@functools.lru_cache(maxsize=32)
def _tree(file: str) -> ast.Module | None:
    return source.syntax_tree(file)


def _innermost(tree: ast.Module, kinds: tuple[type[ast.stmt], ...], line: int, last_line: int) -> ast.stmt | None:
    """The innermost statement of these kinds that both lines are in."""
    return max(source.around(tree, kinds, line, last_line), key=lambda node: node.lineno, default=None)


def _counts(iterable: ast.expr) -> bool:
    """Whether a loop over this goes over numbers: ``range(100)``, ``enumerate(tqdm(range(100)))``."""
    if not isinstance(iterable, ast.Call):
        return False
    name = getattr(iterable.func, "id", getattr(iterable.func, "attr", ""))
    return name in _COUNTERS or (name in _THROUGH and bool(iterable.args) and all(map(_counts, iterable.args[:1])))


def _reaches(loop: ast.stmt, line: int, call_line: int) -> bool:
    """Whether what the statement on a line assigns is used by the one on the later line, directly or through others.

    What is called is not worked on: a model that is copied in each step is no batch.
    """
    carried: set[str] = set()
    called = {getattr(node.func, "id", "") for node in ast.walk(loop) if isinstance(node, ast.Call)}
    for first, last, parts in sorted(_statements(loop), key=lambda statement: statement[0]):
        names = [node for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)]
        names = [name for name in names if name.id not in called]
        reads = any(name.id in carried for name in names if isinstance(name.ctx, ast.Load))
        if first <= call_line <= last:
            return reads
        if reads or first <= line <= last:
            carried |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return False


def _statements(loop: ast.AST) -> Iterator[tuple[int, int, list[ast.AST]]]:
    """First and last line of each statement in it, and what it is made of; of a compound one those of its head."""
    for node in ast.walk(loop):
        if node is loop or not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        parts: list[ast.AST] = [node] if body is None else [part for part in _head(node) if part is not None]
        if parts:
            ends = [getattr(part, "end_lineno", None) or node.lineno for part in parts]
            yield node.lineno, max(ends), parts


def _head(statement: ast.stmt) -> Iterator[ast.AST | None]:
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        yield from (statement.target, statement.iter)
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        for item in statement.items:
            yield from (item.context_expr, item.optional_vars)
    elif isinstance(statement, (ast.If, ast.While)):
        yield statement.test
