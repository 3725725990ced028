"""Elements are taken one after the other where computing the rest of them does nothing."""

from __future__ import annotations

import pytest

from unstall.optimize.computing import NotSteady
from unstall.optimize.remedies.stop_early import with_generators
from unstall.optimize.sources import SourceError, Sources

SOURCE = """import math
import random


def far(a, b):
    return math.dist(a, b) > 0.5


def noting(a, seen):
    seen.append(a)
    return len(seen) > 3


def keep(points, kept, seen):
    for one in points:
        if {}:
            kept.append(one)
    return kept
"""


def written(tmp_path, test):
    path = tmp_path / "points.py"
    path.write_text(SOURCE.replace("{}", test))
    return with_generators(Sources(), path, 16).bytes_of(path).decode()


@pytest.mark.parametrize(
    ("test", "becomes"),
    [
        ("all([far(one, other) for other in kept])", "all(far(one, other) for other in kept)"),
        ("not any( [abs(x) > 3 for x in one if x] )", "not any( abs(x) > 3 for x in one if x )"),
        (
            "any([x > 3 for x in one]) or all([x < 1 for x in one],)",
            "any(x > 3 for x in one) or all(x < 1 for x in one)",
        ),
    ],
)
def test_a_list_that_is_only_looked_through_is_not_made(tmp_path, test, becomes):
    text = written(tmp_path, test)
    assert f"        if {becomes}:\n" in text
    scopes = {}, {}
    exec(SOURCE.replace("{}", test), scopes[0])
    exec(text, scopes[1])
    points = [(0.1 * n, 0.3 * (n % 4)) for n in range(12)]
    assert scopes[0]["keep"](points, [], []) == scopes[1]["keep"](points, [], [])


@pytest.mark.parametrize(
    "test",
    [
        "any([noting(x, seen) for x in one])",
        "any([random.random() > x for x in one])",
        "all([seen.append(x) is None for x in one])",
        "any([(last := x) > 3 for x in one])",
        "any([unknown(x) for x in one])",
    ],
)
def test_elements_that_do_something_are_all_computed(tmp_path, test):
    with pytest.raises(NotSteady):
        written(tmp_path, test)


@pytest.mark.parametrize("test", ["any(x > 3 for x in one)", "sum([x > 3 for x in one])", "any({x > 3 for x in one})"])
def test_other_lists_are_left(tmp_path, test):
    with pytest.raises(SourceError):
        written(tmp_path, test)


def test_a_name_of_the_programs_own_is_left(tmp_path):
    path = tmp_path / "points.py"
    path.write_text(SOURCE.replace("{}", "any([x > 3 for x in one])").replace("import random", "from torch import any"))
    with pytest.raises(SourceError, match="any"):
        with_generators(Sources(), path, 16)
