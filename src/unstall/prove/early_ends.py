"""Changed lines that would leave the training's loop, and that no run reached: when they do is not known.

``break``, ``continue``, ``return``, ``raise`` or ``exit()`` below a condition of the change, inside a loop in which an
optimizer makes its steps. A condition that the original has in the same words is none of the change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from unstall.prove.trees import Sides

_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Raise)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_EXITS = frozenset(("exit", "quit", "_exit", "abort"))

StepLines = frozenset[tuple[str, int]]
"""(file, line) of what is executed while optimizers make steps."""


def first(
    sides: Sides, lines: Mapping[str, Sequence[int]], reached: frozenset[tuple[str, int]], step_lines: StepLines
) -> str | None:
    """``train.py:74 (break)``, the first of them; None where there is none.

    Args:
        sides: of the proof.
        lines: the changed lines of each file.
        reached: (file, line) of those that a run has reached.
        step_lines: where a training step comes from.
    """
    originals = {str(path): before or b"" for path, before, _ in sides.differing}
    for path, changed in lines.items():
        content = sides.changed.get(Path(path))
        try:
            source = Path(path).read_bytes() if content is None else content
            known = _conditions(ast.parse(originals.get(path, b"")))
            leaving = sorted(_leaving(ast.parse(source), known), key=lambda found: found[0].lineno)
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        for statement, loops in leaving:
            is_missed = statement.lineno in changed and (path, statement.lineno) not in reached
            if is_missed and any(_holds(loop, path, step_lines) for loop in loops):
                return f"{Path(path).name}:{statement.lineno} ({ast.unparse(statement).splitlines()[0][:40]})"
    return None


def _leaving(tree: ast.AST, known: frozenset[str]) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
    """(statement that leaves, the loops around it in its function), below a condition that is not known."""

    def walk(node: ast.AST, loops: list[ast.stmt], is_new: bool) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
        if isinstance(node, ast.stmt) and is_new and loops and _leaves(node):
            yield node, loops
        if isinstance(node, _FUNCTIONS):
            loops = []
        elif isinstance(node, _LOOPS):
            loops = [*loops, node]
        elif isinstance(node, ast.If):
            is_new = is_new or ast.unparse(node.test) not in known
        for child in ast.iter_child_nodes(node):
            yield from walk(child, loops, is_new)

    yield from walk(tree, [], False)


def _leaves(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        return getattr(function, "attr", getattr(function, "id", "")) in _EXITS
    return isinstance(statement, _LEAVES)


def _conditions(tree: ast.AST) -> frozenset[str]:
    return frozenset(ast.unparse(node.test) for node in ast.walk(tree) if isinstance(node, ast.If))


def _holds(loop: ast.stmt, path: str, step_lines: StepLines) -> bool:
    """Whether training steps come from within a loop."""
    last = loop.end_lineno or loop.lineno
    return any(file == path and loop.lineno < line <= last for file, line in step_lines)
