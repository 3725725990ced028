"""The user's source code: which function a line belongs to, what the line says, what it calls.

Files are read once, and only read. A file that is gone or does not parse says nothing.
"""

from __future__ import annotations

import ast
import builtins
import functools
import linecache
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from unstall.child.seams.dynamo import RESUMED

Node = TypeVar("Node", bound="ast.stmt | ast.expr")
_LOOPS: tuple[type[ast.stmt | ast.expr], ...] = (
    ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp
)  # fmt: skip
LOOPS = (*_LOOPS, ast.AsyncFor)
"""Statements and expressions whose body may run again and again."""
_BUILTINS = frozenset(name for name in dir(builtins) if name.islower())
_CHEAP_METHODS = frozenset(
    ("append", "extend", "add", "pop", "get", "items", "keys", "values", "setdefault", "update", "sqrt")
)
_COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")


@dataclass(frozen=True)
class SourceFunction:
    """A function of the user's, as written."""

    qualname: str
    first_line: int
    last_line: int
    class_name: str = ""
    generator: bool = False


@dataclass(frozen=True)
class _ParsedFile:
    functions: tuple[SourceFunction, ...]
    classes: dict[str, frozenset[str]]
    calls: dict[int, tuple[str, ...]]
    loops: tuple[tuple[int, int], ...]
    """First and last line of each loop and comprehension."""


def function_at(file: str, line: int, name: str = "") -> SourceFunction:
    """The innermost function around a line, its qualified name as Python gives it.

    ``name`` is the interpreter's name of the frame: a comprehension belongs to the function it is written in, as does
    what torch.compile makes of the code after a break, and a line outside any function to ``<module>``.
    """
    resumed = RESUMED.match(name)
    name = resumed["function"] if resumed else name
    innermost: SourceFunction | None = None
    for function in _parse(file).functions:
        around = function.first_line <= line <= function.last_line
        if around and (innermost is None or function.first_line >= innermost.first_line):
            innermost = function
    if innermost is not None and (not name or name in _COMPREHENSIONS or name.startswith("<")):
        return innermost
    if innermost is not None and innermost.qualname.rpartition(".")[2] == name:
        return innermost
    return SourceFunction(name or "<module>", line, line)


def lines_of(file: str) -> list[str]:
    """The lines of a file, none of one that cannot be read; before Python 3.13 a NUL in its name is an error."""
    try:
        return linecache.getlines(file)
    except ValueError:
        return []


def code_at(file: str, line: int) -> str:
    """The source line, stripped; empty when there is none."""
    return "".join(lines_of(file)[line - 1 : line]).strip() if line > 0 else ""


def calls_at(file: str, line: int) -> tuple[str, ...]:
    """Dotted names of the calls that begin on a line or that the statement on it spans: ``f.read``, ``len``."""
    return _parse(file).calls.get(line, ())


def calls_in(file: str, function: SourceFunction) -> frozenset[str]:
    """Dotted names of all calls that a function makes, those of functions written inside it included."""
    calls = _parse(file).calls
    lines = range(function.first_line, function.last_line + 1)
    return frozenset(call for line in lines for call in calls.get(line, ()))


def lines_calling(file: str, name: str) -> list[int]:
    """Lines of a file with a call of a function of this name, whatever it is an attribute of."""
    calls = _parse(file).calls
    return sorted(line for line, called in calls.items() if any(call.rpartition(".")[2] == name for call in called))


def in_loop(file: str, line: int, without: Collection[int] = ()) -> bool:
    """Whether a line stands in a loop or comprehension of its own function, other than one with these lines."""
    function = function_at(file, line)
    begins = 0 if function.qualname == "<module>" else function.first_line
    around = (range(first, last + 1) for first, last in _parse(file).loops if begins <= first <= line <= last)
    return any(not any(other in loop for other in without) for loop in around)


def is_python_loop(file: str, line: int) -> bool:
    """Whether the innermost loop around a line calls nothing but built-in functions and functions of the file.

    Then what it does is the interpreter's work, one item at a time. A loop that calls a library is another matter.
    """
    parsed = _parse(file)
    around = [(first, last) for first, last in parsed.loops if first <= line <= last]
    if not around:
        return False
    first, last = max(around)
    own = {function.qualname.rpartition(".")[2] for function in parsed.functions}
    calls = [call for number in range(first, last + 1) for call in parsed.calls.get(number, ())]
    return all(_is_cheap(call, own) for call in calls)


def _is_cheap(call: str, own: set[str]) -> bool:
    return call in _BUILTINS or call in own or call.rpartition(".")[2] in _CHEAP_METHODS


def methods_of(file: str, class_name: str) -> frozenset[str]:
    """Names of the methods that a class in the file defines."""
    return _parse(file).classes.get(class_name, frozenset())


def syntax_tree(file: str) -> ast.Module | None:
    """The module's syntax tree; None where the file cannot be read or is no Python."""
    try:
        return ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def around(tree: ast.AST, kinds: tuple[type[Node], ...], line: int, last_line: int = 0) -> list[Node]:
    """The nodes of these kinds that a line is in, and all up to a last one if that is given; the outermost first."""
    last_line = max(line, last_line)
    nodes = (node for node in ast.walk(tree) if isinstance(node, kinds))  # breadth first
    return [node for node in nodes if node.lineno <= line and last_line <= (node.end_lineno or node.lineno)]


def is_head(loop: ast.AST, line: int) -> bool:
    """Whether a line is the head of a ``for`` statement, where it asks what it goes over."""
    return isinstance(loop, (ast.For, ast.AsyncFor)) and loop.lineno <= line <= (loop.iter.end_lineno or loop.lineno)


@functools.lru_cache(maxsize=256)
def _parse(file: str) -> _ParsedFile:
    tree = syntax_tree(file)
    if tree is None:
        return _ParsedFile((), {}, {}, ())
    functions: list[SourceFunction] = []
    classes: dict[str, frozenset[str]] = {}
    calls: dict[int, list[str]] = {}
    loops: list[tuple[int, int]] = []

    def walk(node: ast.AST, prefix: str, class_name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                qualname = prefix + child.name
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                functions.append(
                    SourceFunction(
                        qualname,
                        first,
                        child.end_lineno or child.lineno,
                        class_name,
                        _is_generator(child),
                    )
                )
                walk(child, f"{qualname}.<locals>.", "")
            elif isinstance(child, ast.ClassDef):
                defined = {
                    item.name for item in child.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))
                }
                classes[child.name] = frozenset(defined)
                walk(child, f"{prefix}{child.name}.", child.name)
            else:
                if isinstance(child, _LOOPS):
                    loops.append((child.lineno, child.end_lineno or child.lineno))
                if isinstance(child, ast.Call):
                    # A chained call over several lines: the interpreter is then at the line of the name that is called.
                    for line in {child.lineno, child.func.end_lineno or child.lineno}:
                        calls.setdefault(line, []).append(_dotted(child.func))
                walk(child, prefix, class_name)

    walk(tree, "", "")
    by_line = {line: tuple(names) for line, names in calls.items()}
    return _ParsedFile(tuple(functions), classes, by_line, tuple(loops))


def _is_generator(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))
    return False


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"
