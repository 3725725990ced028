"""What a whole run left behind: exit code, standard output, files."""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from unstall.prove import thresholds
from unstall.prove.left_behind import binaries, event_files
from unstall.prove.trees import Files

STDOUT = "standard output"
STDERR = "standard error"
_TAG = re.compile(r"[a-z]+-?\d+(?:-pytest-[\d.]+)?(?:\.opt-[12])?\.pyc")
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Content:
    """Of a file, or of what was printed."""

    digest: bytes
    size: int
    text: str | None = None
    """None where it is not text, or long."""
    parts: binaries.Parts = field(default_factory=dict, compare=False, repr=False)
    """The numbers in one that is not text."""
    permissions: int | None = field(default=None, compare=False)
    """Who may do what with a file; None of what is no file."""

    def is_as_open(self, other: Content) -> bool:
        """Whether the same people may do the same with both, as far as that is known."""
        return None in (self.permissions, other.permissions) or self.permissions == other.permissions

    @classmethod
    def of(cls, content: bytes) -> Content:
        """What is compared of some bytes."""
        return cls.read(io.BytesIO(content))

    @classmethod
    def read(cls, file: BinaryIO) -> Content:
        """What is compared of a file that is open for reading."""
        digest, size, begin = hashlib.blake2b(digest_size=16), 0, b""
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            if size <= thresholds.MOST_COMPARED_BYTES:
                begin += block
            size += len(block)
        text = _text(begin) if size <= thresholds.MOST_COMPARED_BYTES else None
        return cls(digest.digest(), size, text, binaries.parts_of(file) if text is None else {})


@dataclass(frozen=True)
class Effects:
    """Of one whole run."""

    status: int
    last_line: str
    """The last line that it wrote to stderr."""
    contents: Mapping[str, Content] = field(default_factory=dict)
    """What was printed, and each file that was written."""


_REMOVED = Content(b"removed", -1)


def written(layers: Iterable[tuple[str, Path]], given: Files) -> Iterator[tuple[str, Content]]:
    """(path, content) of each file that a child of the sandbox wrote: it is another than what was there before it ran.

    ``given``: the files that were put in place for the run; what it writes there is compared like any other file.
    """
    for place, upper in layers:
        for folder, _, names in os.walk(upper):
            for name in names:
                above = Path(folder, name)
                path = Path(place) / above.relative_to(upper)
                content = None if _is_compiled(path, above) else _content(above)
                before = _before(path, given) if content is not None else None
                if content is not None and not (before == content and content.is_as_open(before)):
                    yield str(path), content


def _before(path: Path, given: Files) -> Content | None:
    if path not in given:
        return _content(path)
    content = given[path]
    return _REMOVED if content is None else Content.of(content)


def _is_compiled(path: Path, above: Path) -> bool:
    """Whether it is what Python itself keeps of a module that is there."""
    if path.suffix != ".pyc" or path.parent.name != "__pycache__" or _is_unchecked(above):
        return False
    stem, _, tag = path.name.partition(".")
    if not _TAG.fullmatch(tag):
        return False
    source = f"{stem}.py"
    return any((place.parent.parent / source).exists() for place in (path, above))


def _is_unchecked(compiled: Path) -> bool:
    """Whether Python takes it for the source without looking whether that is still the same (PEP 552)."""
    try:
        with compiled.open("rb") as file:
            return int.from_bytes(file.read(8)[4:], "little") == 1
    except OSError:
        return False


def _content(path: Path) -> Content | None:
    """None where there is nothing that can be read."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return Content(os.fsencode(os.readlink(path)), -1)
        if stat.S_ISCHR(mode):  # an overlay's way to say that it is removed
            return _REMOVED
        if not stat.S_ISREG(mode):
            return None
        with path.open("rb") as file:
            text = event_files.as_text(file) if event_files.is_one(path.name) else None
            file.seek(0)
            content = Content.read(file) if text is None else Content.of(text)
            return replace(content, permissions=stat.S_IMODE(mode))
    except OSError:
        return None


def _text(content: bytes) -> str | None:
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


NOTHING = Content.of(b"")
