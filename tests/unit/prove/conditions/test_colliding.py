"""Which changes go by checksums."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.prove.conditions.colliding import goes_by_checksums
from unstall.prove.lines.sources import Change
from unstall.prove.trees import Sides

DATA = Path("/program/data.py")
BEFORE = "import zlib\nold = zlib.crc32(b'old')\ndef decode(text):\n    return text.split()\n"


@pytest.mark.parametrize(
    ("old", "new", "goes"),
    [
        ("    return text.split()", "    return kept.setdefault(zlib.crc32(text.encode()), text.split())", True),
        ("    return text.split()", "    return kept.setdefault(hash(text), text.split())", True),
        ("    return text.split()", "    return kept.setdefault(text, text.split())", False),
        ("    return text.split()", "    return 'crc32'  # hash(text)", False),
        ("    return text.split()", "    return (", False),
    ],
)
def test_those_whose_lines_name_one(old, new, goes):
    sides = Sides({DATA: BEFORE.encode()}, {DATA: BEFORE.replace(old, new).encode()})
    assert goes_by_checksums(Change.of(sides)) == goes
