"""Which functions are let fail, and what that tells."""

from __future__ import annotations

from pathlib import Path

from made_up_proofs import make_run

from unstall.prove.conditions.raised import failing, untold
from unstall.prove.lines.calls import CalledFunction
from unstall.prove.lines.sources import Change
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


def let_fail(calls, after=AFTER):
    sides = Sides({TRAIN: BEFORE.encode()}, {TRAIN: after.encode()})
    called = {CalledFunction(str(TRAIN), name, 1): count for name, count in calls.items()}
    found = failing(Change.of(sides), called)
    return [(one.plan["raised"]["name"], one.plan["raised"]["call"], one.is_new) for one in found]


def test_functions_that_both_have_and_the_change_uses_or_that_it_has_brought_are_let_fail():
    assert let_fail({"read": 12, "fill": 2, "rows": 2}) == [("read", 2, False), ("fill", 2, True)]
    assert let_fail({"fill": 1}) == [("fill", 1, True)]


def test_functions_of_a_file_that_the_original_has_not_are_new_ones(tmp_path):
    filling = tmp_path / "filling.py"
    filling.write_text("def fill(function, paths):\n    return [*map(function, paths)]\n")
    sides = Sides({filling: None})
    found = failing(Change.of(sides), {CalledFunction(str(filling), "fill", 1): 3})
    assert [(one.plan["raised"]["name"], one.is_new) for one in found] == [("fill", True)]


def test_one_that_is_called_once_or_that_the_change_does_not_use_is_not():
    assert let_fail({"read": 1}) == []
    assert let_fail({"read": 12}, after=BEFORE + "x = 1\n") == []
    assert let_fail({"__exit__": 2}, after=BEFORE + "def __exit__(self, *error):\n    pass\n") == []


def test_source_that_nobody_can_read_names_none():
    assert let_fail({"read": 12}, after="def f(:\n") == []


def test_an_error_is_told_by_an_exit_code():
    assert untold(make_run(raised=True)) == "it ends with exit code 0"
    assert untold(make_run(timed_out=True)) == "it does not end"
    assert untold(make_run(raised=True, status=1)) is None and untold(make_run()) is None
