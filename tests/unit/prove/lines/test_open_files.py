"""Files that are opened once for a dataset, and whose position its items move."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.prove.lines.open_files import first
from unstall.prove.lines.sources import Change
from unstall.prove.trees import Sides

DATA = Path("/program/data.py")
BEFORE = """\
class Pictures(Dataset):
    def __init__(self, path):
        self.path = path
        self.old = open(path)

    def __getitem__(self, index):
        return self.decode(index)

    def decode(self, index):
        return self.old.read(index)

class Writer:
    def __init__(self, path):
        self.path = path
"""


def opened(*changes):
    after = BEFORE
    for old, new in changes:
        assert old in after
        after = after.replace(old, new, 1)
    sides = Sides({DATA: BEFORE.encode()}, {DATA: after.encode()})
    return first(Change.of(sides))


OPENS = ("self.path = path\n", "self.path = path\n        self.file = tempfile.TemporaryFile()\n")
READS = ("self.old.read(index)", "self.file.seek(index) and self.file.read(8)")


def test_a_file_that_items_move_in_is_named():
    assert opened(OPENS, READS) == (
        "data.py:4 opens a file once, and items of Pictures move its position: loader workers would share it"
    )
    fills = ("    def __getitem__", "    def fill(self):\n        self.file = open(self.path)\n\n    def __getitem__")
    assert "data.py:8 opens" in opened(("self.path = path\n", "self.path = path\n        self.fill()\n"), fills, READS)


@pytest.mark.parametrize(
    "changes",
    [
        [READS],
        [OPENS],
        [OPENS, ("self.old.read(index)", "os.pread(self.file.fileno(), 8, index)")],
        [("return self.decode(index)", "self.file = open(self.path)\n        return self.decode(index)"), READS],
        [("class Writer:\n    def __init__(self, path):\n", "class Writer:\n    def __init__(self, path):\n        self.out = open(path)\n        self.out.write('a')\n")],
        [("self.old.read(index)", "self.old.read(index")],
    ],
)  # fmt: skip
def test_one_that_each_process_opens_or_nobody_moves_in_is_none(changes):
    assert opened(*changes) is None
