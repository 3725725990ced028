"""Which functions are let fail, and what that tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_up_proofs import make_run

from unstall.prove.conditions.raised import is_hidden, plans
from unstall.prove.lines.calls import CalledFunction
from unstall.prove.lines.reached import changed_lines
from unstall.prove.trees import Sides

TRAIN = Path("/program/train.py")
BEFORE = """\
def read(path):
    return load(path)

def rows(paths):
    return [read(path) for path in paths]
"""
AFTER = """\
def read(path):
    return load(path)

def rows(paths):
    return fill(read, paths)

def fill(function, paths):
    return [*map(function, paths)]
"""


def planned(calls, after=AFTER):
    sides = Sides({TRAIN: BEFORE.encode()}, {TRAIN: after.encode()})
    called = {CalledFunction(str(TRAIN), name, 1): count for name, count in calls.items()}
    return [plan["raised"] for _, plan in plans(sides, changed_lines(sides), called)]


def test_a_function_that_both_have_and_the_change_uses_is_let_fail():
    assert planned({"read": 12, "fill": 2, "rows": 2}) == [{"path": str(TRAIN), "name": "read", "call": 2}]


def test_one_that_is_called_once_or_that_the_change_does_not_use_is_not():
    assert planned({"read": 1}) == []
    assert planned({"read": 12}, after=BEFORE + "x = 1\n") == []


def test_source_that_nobody_can_read_names_none():
    assert planned({"read": 12}, after="def f(:\n") == []


@pytest.mark.parametrize(
    ("original", "changed", "hidden"), [(1, 0, True), (1, 1, False), (1, 120, False), (0, 0, False)]
)
def test_an_error_is_hidden_where_the_original_ends_with_it(original, changed, hidden):
    assert is_hidden(*(make_run(status=status, raised=True) for status in (original, changed))) == hidden
    assert not is_hidden(make_run(status=original), make_run(status=changed, raised=True))
