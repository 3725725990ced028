"""A unified diff of bytes, as git writes it: every line ending and encoding stays what it is."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

from unstall.optimize.source.files import Sources

_NO_NEWLINE = b"\\ No newline at end of file\n"


def unified(sources: Sources, folder_of: Callable[[Path], Path | None]) -> bytes:
    """The diff of all changed files, with a/ and b/ before their paths; empty without changes.

    ``folder_of``: the folder that a file's path is relative to.
    """
    return b"".join(
        one_file(current, wanted, _relative(path, folder_of(path)), is_new=not path.exists())
        for path, current, wanted in sources.differing()
    )


def _relative(path: Path, folder: Path | None) -> str:
    path = path.resolve()
    return (path.relative_to(folder.resolve()) if folder is not None else path).as_posix()


def one_file(old: bytes, new: bytes, name: str, *, is_new: bool = False) -> bytes:
    """The diff of one file, with git's header lines."""
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        _lines(old),
        _lines(new),
        b"/dev/null" if is_new else quoted("a/" + name),
        quoted("b/" + name),
        lineterm=b"\n",
    )
    return b"".join(line if line.endswith(b"\n") else line + b"\n" + _NO_NEWLINE for line in lines)


def _lines(content: bytes) -> list[bytes]:
    """Lines as git sees them: ended by a line feed only."""
    lines = content.split(b"\n")
    ended = [line + b"\n" for line in lines[:-1]]
    return ended + ([lines[-1]] if lines[-1] else [])


def quoted(name: str) -> bytes:
    """A path as git writes it: in quotes, with octal escapes, when it has unusual characters."""
    raw = name.encode()
    is_printable = all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in raw)
    if is_printable:
        return raw + (b"\t" if b" " in raw else b"")
    escapes = {9: b"\\t", 10: b"\\n", 34: b'\\"', 92: b"\\\\"}
    body = b"".join(escapes.get(byte) or (bytes([byte]) if 0x20 <= byte < 0x7F else b"\\%03o" % byte) for byte in raw)
    return b'"' + body + b'"'
