"""Limits that only the changed program has, made smaller."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.prove.conditions.limits import smaller_limits
from unstall.prove.lines.sources import Change
from unstall.prove.trees import Sides

TRAIN = Path("/program/train.py")
BEFORE = """\
WIDTH, HEIGHT = 64, 48
losses = []
rows = read(names)
"""


def limited(after, before=BEFORE, **others):
    sides = Sides({TRAIN: before.encode()}, {TRAIN: after.encode()})
    for name, (old, new) in others.items():
        for files, content in zip((sides.original, sides.changed), (old, new)):
            files[Path(f"/program/{name}.py")] = content.encode()
    found = smaller_limits(Change.of(sides))
    return found and (found.sides.changed[TRAIN].decode(), found.where)


@pytest.mark.parametrize(
    ("old", "new", "smaller"),
    [
        ("losses = []", "losses = deque(maxlen=64)", "losses = deque(maxlen=8)"),
        ("losses = []", "é, losses = '', deque((), 100)", "é, losses = '', deque((), 10)"),
        ("losses = []", "PIECES, MOST = 3, 0x40", "PIECES, MOST = 3, 8"),
        ("losses = []", "def kept(count=9, *, most=100): pass", "def kept(count=3, *, most=10): pass"),
        ("read(names)", "read(names[:1_000])[25:]", "read(names[:31])[25:]"),
        ("read(names)", "read(names) if len(names) < 16 else []", "read(names) if len(names) < 4 else []"),
        ("read(names)", "islice(read(names, at_most=20), 10)", "islice(read(names, at_most=4), 3)"),
    ],
)
def test_what_may_be_a_limit_is_as_large_as_its_square_root(old, new, smaller):
    assert limited(BEFORE.replace(old, new))[0] == BEFORE.replace(old, smaller)


@pytest.mark.parametrize(
    "new",
    [
        "read(names, rows=64)",  # of what, nobody knows
        "read(names)[..., 16]",
        "read(names) if len(names) != 16 else []",
        "read(names[:7])",
        "read(names[:-64])",
        "read(names[:True])",
        "read(names[:1e3])",
    ],
)
def test_what_is_none_is_left(new):
    assert limited(BEFORE.replace("read(names)", new)) is None


def test_numbers_that_the_original_has_as_often_are_none_of_the_change():
    assert limited(BEFORE.replace("WIDTH, HEIGHT = 64, 48", "HEIGHT, WIDTH = 48, 64")) is None
    moved = BEFORE.replace("WIDTH, HEIGHT = 64, 48", "from sizes import WIDTH, HEIGHT")
    assert limited(moved, sizes=("", "WIDTH, HEIGHT = 64, 48\n")) is None


def test_the_places_are_told():
    _, where = limited(BEFORE.replace("losses = []", "losses = deque(maxlen=64)").replace("names", "names[:100]"))
    assert where == " with limits that only it has made smaller (8 for 64 in train.py:2, 10 for 100 in train.py:3)"
