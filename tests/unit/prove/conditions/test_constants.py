"""Both sides with other constants than theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.prove import thresholds
from unstall.prove.conditions.constants import other_constants
from unstall.prove.lines.sources import Change
from unstall.prove.trees import Sides

METRICS = Path("/program/metrics.py")
BEFORE = """\
LEAST, MOST, É = 0.5, 0.45, 2.0
RATE = 1e-2
UNUSED = 0.25
COUNT, NONE, lower = 3, 0.0, 0.5


def kept(scores):
    return [É * score for score in scores if score > LEAST and score < MOST + RATE + COUNT + NONE + lower]
"""


def others(after, before=BEFORE):
    sides = Sides({METRICS: before.encode()}, {METRICS: after.encode()})
    return other_constants(Change.of(sides))


def test_numbers_named_in_capitals_are_smaller_on_both_sides():
    assert others(BEFORE.replace("for score in", "for score")) is None, "it is no Python"
    found = others(BEFORE.replace("É * score", "score * É"))
    assert found.where == " with LEAST, MOST, RATE, É 0.62 times as large"
    least, most, other, rate = (number * thresholds.CONSTANT for number in (0.5, 0.45, 2.0, 1e-2))
    head = (
        f"LEAST, MOST, É = {least}, {most}, {other}\nRATE = {rate}\nUNUSED = 0.25\nCOUNT, NONE, lower = 3, 0.0, 0.5\n"
    )
    for files in (found.sides.original, found.sides.changed):
        assert files[METRICS].decode().startswith(head)
    assert (
        "score * É" in found.sides.changed[METRICS].decode() and "É * score" in found.sides.original[METRICS].decode()
    )


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("RATE = 1e-2", "RATE = 2e-2", "LEAST, MOST, É"),  # the change sets it
        ("RATE = 1e-2\n", "RATE = 1e-2 * 1\n", "LEAST, MOST, É"),
        ("> LEAST", "> 0.5", "LEAST, MOST, RATE, É"),  # the change no longer asks for it
    ],
)
def test_only_those_that_both_have_alike(old, new, names):
    assert others(BEFORE.replace(old, new)).where == f" with {names} 0.62 times as large"


def test_files_without_any_are_left():
    before = "def kept(scores):\n    return scores\n"
    assert others(before + "\n\nprint()\n", before) is None
