"""A function that remembers its results gives the same ones, and its lists are known by which one they are."""

from __future__ import annotations

import libcst as cst
import pytest
from optimize_builders import make_context, make_measurement, make_module, make_report

from unstall.optimize.remedies.base import NotApplicable
from unstall.optimize.remedies.memoize import REMEDY, with_memory
from unstall.optimize.source.errors import AnalysisRefused
from unstall.records.measurements import LoaderMeasurement
from unstall.records.report import Hotspot


def remembering(source, name):
    module = make_module(source)
    return with_memory(module, next(one for one in module.all(cst.FunctionDef) if one.name.value == name)).code


def test_a_function_that_remembers():
    changed = remembering("def f(word):\n    return len(word)\n", "f")
    assert "import functools" in changed and "@functools.lru_cache(maxsize=65536, typed=True)\ndef f(word):" in changed
    named = remembering("import functools as ft\n\ndef f(word):\n    return len(word)\n", "f")
    assert "@ft.lru_cache" in named and "import functools\n" not in named


def test_a_function_that_does_more_is_left():
    with pytest.raises(AnalysisRefused, match="f: line 2 calls print"):
        remembering("def f(word):\n    print(word)\n    return 1\n", "f")


@pytest.mark.parametrize("collates", [False, True])
def test_what_the_loader_gives_a_list_is_left(tmp_path, collates):
    path = tmp_path / "train.py"
    path.write_text("def pad(samples):\n    return len(samples)\n")
    spot = Hotspot(function="pad", file=str(path), line=2, share=0.5, phase="data_wait")
    loader = LoaderMeasurement(workers=0, collate_at=(str(path), 1) if collates else ("", 0))
    context = make_context(tmp_path, report=make_report(hotspots=[spot]), measurement=make_measurement(loader=loader))
    if collates:
        with pytest.raises(NotApplicable, match="gives it a list"):
            REMEDY.propose(context)
    else:
        assert [proposal.key for proposal in REMEDY.propose(context)] == ["train.py:pad"]


TABLE = """import random

calls = []


def load(lines, start):
    return [float(cell) for cell in lines[start].split(",")]


def main():
    lines = ["1,2", "3,4"]
    for epoch in range(3):
        for start in range(len(lines)):
            calls.append(load(lines, start))
"""


@pytest.mark.parametrize(
    ("old", "new", "by_list"),
    [
        ("", "", True),
        ("    for epoch", "    random.shuffle(lines)\n    for epoch", False),
        ("    for epoch", "    lines.append('5,6')\n    for epoch", False),
        ("    for epoch", "    lines[0] = '5,6'\n    for epoch", False),
        ("    for epoch", "    other = lines\n    for epoch", False),
        ("        for start", "        lines = list(lines)\n        for start", False),
        ("load(lines, start))", "load(lines, start=start))", False),
        ("load(lines, start))", "load(list(lines), start))", False),
    ],
)
def test_a_list_that_stays_as_it_is_is_known_by_which_one_it_is(old, new, by_list):
    changed = remembering(TABLE.replace(old, new), "load")
    assert ("@functools.partial(_Remembered, lists=(0,))\ndef load(" in changed) is by_list
    assert ("@functools.lru_cache" in changed) is not by_list
    if by_list:
        spaces: list[dict] = [{}, {}]
        for text, space in zip((TABLE, changed), spaces):
            exec(compile(text, "table.py", "exec"), space)
            space["main"]()
        assert spaces[0]["calls"] == spaces[1]["calls"]
        assert spaces[1]["calls"][0] is spaces[1]["calls"][2], "the first epoch's answer"
        other = ["9,9"]
        assert spaces[1]["load"](other, 0) == [9.0, 9.0] and spaces[1]["load"].__name__ == "load"
        with pytest.raises(TypeError, match="unhashable"):
            spaces[1]["load"](other, [0])  # a list at another place may change
