"""What functions give for what they are given, in a real process."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unstall.child.trial.results import Opaque, described
from unstall.prove.lines.results import found_in

from .test_account import run_under

PROGRAM = """
    import random
    import numpy as np

    def double(row, *, by=2):
        row.append(9)
        return [by * number for number in row]

    def draw(most):
        return random.random() * most

    def opaque(thing):
        return 1

    def later(most):
        yield most

    class Net:
        def double(self, row):
            return row

    def plain(row):
        return row

    for _ in range(3):
        double([1, 2])
        draw(3)
    double(row=[1, 2], by=3)
    opaque(Net())
    list(later(2))
    Net().double([1])
    plain(np.ones(2))
"""


@pytest.mark.timeout(120)
def test_functions_of_the_module_are_noted_by_what_they_were_given(tmp_path):
    names = ["double", "draw", "opaque", "later"]
    plan = {"results": {"functions": {str(tmp_path / "program.py"): names}}}
    done, folder = run_under(plan, PROGRAM, tmp_path)
    assert not done.stderr
    found = [(name, value) for (_, name, _), value in found_in(folder / "results.json").items()]
    # By two; by three; draw() gave three things for one, and of an object nothing is known.
    assert found == [("double", [2, 4, 18]), ("double", [3, 6, 27])]
    assert found_in(tmp_path / "nothing.json") == {}


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ([1, (2.5, "a")], [1, [2.5, "a"]]),
        ({"b", "a"}, ["a", "b"]),
        ({"x": np.arange(2), 1: None}, [["x", [0, 1]], [1, None]]),
        (torch.ones(1, 2), [[1.0, 1.0]]),
        (np.float32(0.5), 0.5),
    ],
)
def test_values_are_nested_lists(value, wanted):
    assert described(value) == wanted


@pytest.mark.parametrize(
    "value", [object(), [object()], torch.ones(5000), np.array([object()]), torch.ones(2).to_sparse(), [[[[[[[1]]]]]]]]
)
def test_nothing_is_said_of_others(value):
    with pytest.raises(Opaque):
        described(value)
