"""Options of the command line that the program looked at, and the changed one does not: it goes by what they are here.

A run has one value of each. What is written in their place is right for that one alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from unstall.prove.lines.sources import called, of_change
from unstall.prove.trees import Sides


def first(sides: Sides, lines: Mapping[str, Sequence[int]]) -> str | None:
    """In words, the first of them that both sides take; None where there is none.

    ``lines``: the changed lines of each file.
    """
    sources = list(of_change(sides, lines))
    after = set().union(*(_read(source.after) for source in sources))
    dropped = set().union(*(_read(source.before) for source in sources)) - after
    if "vars" in after:  # all of them at once
        return None
    for source in sources:
        taken = dict(_declared(source.before))
        for name, (option, line) in _declared(source.after):
            if name in taken and name in dropped:
                return (
                    f"it no longer looks at its option {option} ({source.place(line)}): with another it does the same"
                )
    return None


def _declared(tree: ast.AST) -> Iterator[tuple[str, tuple[str, int]]]:
    """(attribute, (option, line)) of what a parser of the standard library is told of."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or called(node) != "add_argument":
            continue
        words = [word.value for word in node.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
        option = next((word for word in words if word.startswith("--")), words[0] if words else "")
        given = next((word.value for word in node.keywords if word.arg == "dest"), None)
        name = given.value if isinstance(given, ast.Constant) else option.lstrip("-").replace("-", "_")
        if option and isinstance(name, str):
            yield name, (option, node.lineno)


def _read(tree: ast.AST) -> set[str]:
    """The attributes that a source asks for, by name or with ``getattr``; ``vars`` where it takes all of them."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            names.add(node.attr)
        elif isinstance(node, ast.Call) and called(node) == "getattr":
            names.update(str(word.value) for word in node.args[1:2] if isinstance(word, ast.Constant))
        elif isinstance(node, ast.Name) and node.id == "vars":
            names.add(node.id)
    return names
