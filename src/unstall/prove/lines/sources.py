"""The changed files of a program as Python, as they were and as they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from unstall.prove.trees import Sides, content_of


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


def of_change(sides: Sides, lines: Mapping[str, Sequence[int]]) -> Iterator[ChangedSource]:
    """All that both sides' Python can be read of.

    ``lines``: the changed lines of each file.
    """
    originals = {str(path): before or b"" for path, before, _ in sides.differing}
    for path, changed in lines.items():
        try:
            before, after = ast.parse(originals.get(path, b"")), ast.parse(content_of(sides.changed, path))
            ast.unparse(before), ast.unparse(after)  # so that nobody who does it of a part need expect an error
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        yield ChangedSource(path, before, after, changed)
