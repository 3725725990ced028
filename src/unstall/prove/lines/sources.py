"""The change as Python: the sources in which the sides differ, as they were and as they are, and the lines of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from unstall.prove.trees import Files, Sides, content_of

_SUFFIXES = (".py", ".pyw")


class ChangedSource(NamedTuple):
    """One of them."""

    path: str
    before: ast.Module
    """Of nothing where the original has no such file."""
    after: ast.Module
    lines: Sequence[int]
    """That the change has in it."""

    def place(self, line: int) -> str:
        """In words."""
        return f"{Path(self.path).name}:{line}"


@dataclass(frozen=True)
class Change:
    """What a proof is about. Its sources are parsed once, when it is made by :meth:`of`."""

    sides: Sides
    lines: Mapping[str, Sequence[int]]
    """Path of each source file → the lines in it that the change has brought."""
    sources: Sequence[ChangedSource]
    """Of these files those that can be read as Python on both sides."""

    @classmethod
    def of(cls, sides: Sides) -> Change:
        """From the original to the changed program."""
        lines = dict(_changed_lines(sides))
        return cls(sides, lines, [*_sources(sides, lines)])


def parsed(files: Files, path: str) -> ast.Module | None:
    """A file of a side as Python; None where it has none that can be read."""
    try:
        return ast.parse(content_of(files, path))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def _changed_lines(sides: Sides) -> Iterator[tuple[str, list[int]]]:
    for path, before, after in sides.differing:
        if after is None or path.suffix not in _SUFFIXES:
            continue
        old, new = ((content or b"").splitlines() for content in (before, after))
        blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        lines = [line + 1 for tag, _, _, first, end in blocks if tag != "equal" for line in range(first, end)]
        if lines:
            yield str(path), lines


def _sources(sides: Sides, lines: Mapping[str, Sequence[int]]) -> Iterator[ChangedSource]:
    new = {str(path) for path, before, _ in sides.differing if before is None}
    for path, changed in lines.items():
        before = ast.Module([], []) if path in new else parsed(sides.original, path)
        after = parsed(sides.changed, path)
        if before is not None and after is not None and _can_be_written(before) and _can_be_written(after):
            yield ChangedSource(path, before, after, changed)


def _can_be_written(tree: ast.Module) -> bool:
    """Whether nobody who unparses a part of it need expect an error."""
    try:
        ast.unparse(tree)
    except (ValueError, RecursionError):
        return False
    return True
