"""Loops over ``zip(..., strict=True)``: compiled, they end as Python's do."""

from __future__ import annotations

import itertools
import textwrap

import pytest
from compiled_loops import agree, both, changed, line_of
from optimize_builders import make_module

from unstall.optimize.compiling import compiled
from unstall.optimize.source.errors import AnalysisRefused

pytest.importorskip("numba")

ADDED = """
    def added(a, b, c, out):
        for {target} in {values}:
            {body}
        return len(out)
    """


def of_three(body="out[0] += x * y * z", values="zip(a, b, c, strict=True)", target="x, y, z"):
    return ADDED.format(body=body, values=values, target=target)


@pytest.mark.parametrize(
    ("target", "values"),
    [
        ("x, y, z", "zip(a, b, c, strict=True)"),
        ("i, (x, y, z)", "enumerate(zip(a, b, c, strict=True))"),
        ("x, y, z", "zip(a, b, c, strict=False)"),
        ("x, y, z", "zip(a[1:], b[:-1], range(1, len(c)), strict=True)"),
    ],
)
def test_it_gives_the_same(target, values):
    source = of_three(values=values, target=target)
    agree(source, "out[0]", "added", [1.0, 2.0], [3.0, 4.0], [0.5, 0.25], [0.0])


def test_it_raises_what_zip_raises_at_the_same_moment():
    old, new, loop = both(of_three(), "out[0]", "added")
    for lengths in itertools.product((1, 2, 3), repeat=3):
        ended = []
        for function in (old, new):
            arguments, out = [[1.0] * length for length in lengths], [0.0]
            try:
                ended.append((function(*arguments, out), out))
            except ValueError as error:
                ended.append((str(error), out))
        assert ended[0] == ended[1]
    assert all(kernel is not None for kernel in loop.kernels.values())


def test_a_loop_that_is_left_asks_for_no_lengths():
    source = of_three(body="out[0] += x * y * z\n            if out[0] > 2:\n                break")
    agree(source, "out[0] +=", "added", [1.0, 2.0, 1.0], [3.0, 4.0], [0.5, 3.0, 1.0], [0.0])


def test_rows_are_taken_apart_within():
    source = """
        def nearest(points, radii, limit):
            found = limit
            for (x, y), radius in zip(points, radii, strict=True):
                if x * x + y * y < radius:
                    found = min(found, x)
            return [found]
        """
    agree(source, "found = min", "nearest", [[1.0, 2.0], [0.5, 0.5]], [9.0, 4.0], 100.0)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (of_three(body="out[0] += sum(x * y for x, y in zip(a, b, strict=True))"), "zips strictly what no loop goes"),
        (of_three(body="a.append(x)"), "goes over what it appends to"),
        (of_three(values="zip(zip(a, b), c, strict=True)"), "may have no length"),
        (of_three(values="zip(a, b, c, strict=len(a))"), "passes arguments by name"),
        (of_three(values="zip(*a, strict=True)"), "passes arguments by name"),
    ],
)
def test_where_lengths_cannot_be_compared_it_is_refused(source, reason):
    source = textwrap.dedent(source)
    with pytest.raises(AnalysisRefused, match=reason):
        compiled(make_module(source), line_of(source, "for x, y, z in"))


def test_a_function_that_it_calls_may_not():
    source = """
        def total(a, b):
            found = 0.0
            for x, y in zip(a, b, strict=True):
                found += x * y
            return found


        def totals(rows, b):
            out = []
            for row in rows:
                out.append(total(row, b))
            return out
        """
    assert "_total_loop" in changed(source, "found +=")
    with pytest.raises(AnalysisRefused, match="says zip"):
        changed(source, "out.append")
