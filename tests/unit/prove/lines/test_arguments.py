"""Arguments that a changed function no longer looks at."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.prove.lines.arguments import first
from unstall.prove.lines.sources import Change
from unstall.prove.trees import Sides

TRAIN = Path("/program/train.py")
BEFORE = """\
class Average:
    def __init__(self, model, decay):
        self.model, self.decay = copy(model), decay

    def update(self, model, *, decay=0.9):
        for ours, theirs in zip(self.model.parameters(), model.parameters()):
            ours.lerp_(theirs, 1 - decay)

def padded(rows, fill=0):
    return [row + [fill] for row in rows]
"""


def dropped(old, new):
    after = BEFORE.replace(old, new)
    sides = Sides({TRAIN: BEFORE.encode()}, {TRAIN: after.encode()})
    return first(Change.of(sides))


def test_a_function_that_goes_by_what_it_took_hold_of_is_named():
    loop = "        for ours, theirs in zip(self.model.parameters(), model.parameters()):\n"
    assert dropped(loop, "        for ours, theirs in self.pairs:\n") == (
        "Average.update (train.py:5) no longer looks at its argument model: with another it does the same"
    )
    assert "argument decay" in dropped("1 - decay", "0.1")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("model.parameters())", "chosen(model))"),
        ("def padded(rows, fill=0):\n    return [row + [fill] for row in rows]", "def padded(rows):\n    return rows"),
        ("def padded(rows, fill=0)", "def filled(rows, fill)"),
        ("copy(model), decay", "copy(model), decay  # kept"),
        ("def padded(", "def new(rows):\n    return 1\n\ndef padded("),
        ("def padded(", "def padded(:"),
    ],
)
def test_one_that_looks_at_them_or_has_them_no_more_is_none(old, new):
    assert dropped(old, new) is None
