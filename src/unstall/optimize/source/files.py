"""The user's source files as they are on disk, and as a set of changes would have them. Bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import libcst as cst

from unstall.optimize.source.errors import SourceError
from unstall.optimize.source.module import SourceModule, parsed

_BOM = b"\xef\xbb\xbf"


class Sources:
    """An immutable set of changed files over those on disk."""

    def __init__(self, changed: Mapping[Path, bytes] | None = None):
        self.changed = dict(changed or {})

    def bytes_of(self, path: Path) -> bytes:
        """The file as these changes have it."""
        changed = self.changed.get(path)
        return path.read_bytes() if changed is None else changed

    def module(self, path: Path) -> SourceModule:
        """The file as a syntax tree that keeps every space and comment. Raises SourceError in one line."""
        try:
            return parsed(self.bytes_of(path).removeprefix(_BOM))
        except OSError as error:
            raise SourceError(f"{path} cannot be read: {error.strerror}") from error
        except (cst.ParserSyntaxError, UnicodeDecodeError, LookupError, SyntaxError) as error:
            reason = str(error).splitlines()[0]
            raise SourceError(f"{path.name} is not Python that can be changed safely: {reason}") from error

    def with_module(self, path: Path, module: cst.Module) -> Sources:
        """These sources with one file replaced. Raises SourceError when what was written is not valid Python."""
        new = module.bytes
        try:
            compile(new, str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise SourceError(f"the change to {path.name} is not valid: {error}") from error
        if self.bytes_of(path).startswith(_BOM):
            new = _BOM + new
        return Sources({**self.changed, path: new})

    def differing(self) -> Iterator[tuple[Path, bytes, bytes]]:
        """(path, bytes on disk, bytes wanted) of every file that differs; one that is new has none on disk."""
        for path, wanted in sorted(self.changed.items()):
            current = path.read_bytes() if path.exists() else b""
            if current != wanted:
                yield path, current, wanted

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sources) and self.changed == other.changed

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.changed)))
