"""What functions give for what they are given, in a real process."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unstall.child.trial.results import OVERWRITTEN, Opaque, described
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
    rows = found_in(folder / "results.json").items()
    # By two; by three; draw() gave three things for one, and of an object nothing is known.
    results = [(name, value) for (_, name, given), value in rows if not given.startswith(OVERWRITTEN)]
    assert results == [("double", [2, 4, 18]), ("double", [3, 6, 27])]
    overwritten = [(name, value) for (_, name, given), value in rows if given.startswith(OVERWRITTEN)]
    assert overwritten == [("double", True), ("draw", False), ("double", True)]
    assert found_in(tmp_path / "nothing.json") == {}


ORDERED = """
    import random
    import sys
    import numpy as np
    import torch

    def jumps(tags, last):
        tags.append(last)
        return [after - before for before, after in zip(tags, tags[1:])]

    def first_above(times, limit):
        return next(number for number, time in enumerate(times) if time >= limit)

    def drawn(tags):
        return [random.random() for _ in tags]

    def strict(tags):
        if tags != [5, 1, 3]:
            sys.exit(f"{tags} is not what was asked for")
        return tags

    def rows(boxes):
        return boxes.sum(1) + boxes[0]

    jumps([1, 5, 2], 7)
    first_above([1, 2, 3], 2)
    drawn([3, 1, 2])
    strict([5, 1, 3])
    rows(torch.tensor([[2.0, 3.0], [1.0, 0.0], [5.0, 5.0]]).requires_grad_()[:, :1])
"""


@pytest.mark.timeout(120)
def test_functions_are_also_given_their_sequences_in_another_order_if_they_had_none(tmp_path):
    names = ["jumps", "first_above", "drawn", "strict", "rows"]
    plan = {"results": {"functions": {str(tmp_path / "program.py"): names}}}
    done, folder = run_under(plan, ORDERED, tmp_path)
    assert not done.stderr
    found = [(name, value) for (_, name, given), value in found_in(folder / "results.json").items() if given[0] == "~"]
    assert found == [("jumps", [3, -4, 6]), ("rows", [10.0, 6.0, 7.0])]


@pytest.mark.timeout(120)
def test_a_call_that_does_not_end_in_another_order_is_given_up(tmp_path, monkeypatch):
    program = """
        def up_to(tags):
            place = 0
            while tags[place] != 2:
                place += tags[0] == 5
            return place

        def later(tags):
            return len(tags)

        up_to([5, 2, 3])
        later([5, 2, 3])
    """
    plan = {"results": {"functions": {str(tmp_path / "program.py"): ["up_to", "later"]}}}
    done, folder = run_under(plan, program, tmp_path)
    assert not done.stderr
    found = found_in(folder / "results.json").items()
    assert [value for (_, _, given), value in found if not given.startswith(OVERWRITTEN)] == [1, 3]


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
