"""A unified diff of bytes, as git writes it: every line ending and encoding stays what it is."""

from __future__ import annotations

import difflib
from pathlib import Path

from unstall.optimize.source.files import Sources

_NO_NEWLINE = b"\\ No newline at end of file\n"


def unified(sources: Sources, root: Path) -> bytes:
    """The diff of all changed files, paths relative to ``root`` with a/ and b/ before them; empty without changes."""
    return b"".join(
        one_file(current, wanted, path.resolve().relative_to(root.resolve()).as_posix())
        for path, current, wanted in sources.differing()
    )


def one_file(old: bytes, new: bytes, name: str) -> bytes:
    """The diff of one file, with git's header lines."""
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        _lines(old),
        _lines(new),
        quoted("a/" + name),
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
