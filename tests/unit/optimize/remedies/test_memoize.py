"""A function that remembers its results gives the same ones, and its lists are known by which one they are."""

from __future__ import annotations

import libcst as cst
import pytest
from optimize_builders import make_context, make_measurement, make_module, make_report

from unstall.optimize.remedies.memoize import REMEDY, with_memory
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable
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
        with pytest.raises(TypeError, match="list indices"):
            spaces[1]["load"](other, [0])  # a list at another place may change, and is not looked up


PLACES = """
def places_of(values, wanted):
    return [place for place, value in enumerate(values) if value == wanted]
"""


def test_one_that_goes_through_what_it_is_given_knows_a_long_tuple_by_which_it_is():
    changed = remembering(PLACES, "places_of")
    assert "@functools.partial(_Remembered, lists=())\ndef places_of(" in changed
    space: dict = {}
    exec(compile(changed, "places.py", "exec"), space)
    places_of, values = space["places_of"], tuple(range(100)) * 2
    first = places_of(values, wanted=7)
    assert first == [7, 107] and places_of(values, wanted=7) is first
    assert places_of(values, wanted=7.5) == [] and places_of(tuple(values[1:]), 7) == [6, 106]
    assert places_of(values, True) == [1, 101] and places_of(values, 1) == [1, 101]


def test_what_has_no_value_to_look_up_is_computed_each_time():
    space: dict = {}
    exec(compile(remembering(PLACES, "places_of"), "places.py", "exec"), space)
    values = [1, 2, 1]
    assert space["places_of"](values, 1) == [0, 2]
    values[0] = 2
    assert space["places_of"](values, 1) == [2]
    rows = tuple([number] for number in range(100))
    assert space["places_of"](rows, [3]) == [3]
    rows[3][0] = 4
    assert space["places_of"](rows, [3]) == []
    many = tuple([number] for number in range(100))
    assert space["places_of"](many, 3) == [] and space["places_of"].__name__ == "places_of"


def test_an_argument_under_another_name_is_another_call():
    source = "def f(x, a=1, b=1):\n    return [value * 10 * a + b for value in x]\n"
    space: dict = {}
    exec(compile(remembering(source, "f"), "f.py", "exec"), space)
    assert space["f"]((1,), a=2) == [21] and space["f"]((1,), b=2) == [12] and space["f"]((1,), 2) == [21]
