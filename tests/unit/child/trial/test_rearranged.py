"""Arguments in another order."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unstall.child.trial.rearranged import copy_of, reverse, unordered


@pytest.mark.parametrize(
    ("calls", "wanted"),
    [
        ([[3, 1, 2]], True),
        ([(3, 1, 2)], True),
        ([[1, 2, 3]], False),
        ([[3, 2, 2]], False),
        ([[3, 1]], False),
        ([[3, 1, 2], [1]], True),
        ([[3, 1, 2], 1], False),
        ([[3, 1, 2], [0, 0, 0], [0, 0, 0]], True),
        ([[1, 2, 3], [0, 0, 0]], False),
        ([[0, 0, 0]], False),
        ([[3, 1, 2], [5, 1, 2], [1, 2, 3]], True),
        ([[1, 2, 3], [5, 1, 2], [1, 2, 3]], False),
        ([["b", "a", "c"]], True),
        ([[1, "a", None]], True),
        ([[(torch.ones(3), 1), (torch.ones(2), 2), (torch.ones(4), 1)]], True),
        ([[np.ones(3), np.ones(2), np.ones(4)]], True),
        ([[np.ones(3), np.ones(3), np.ones(3)]], True),
        ([np.array([3.0, 1.0, 2.0])], True),
        ([torch.tensor([[1, 9], [2, 5], [3, 7]])], False),
        ([torch.tensor([[1, 9], [0, 5], [3, 7]])], True),
        ([torch.tensor(3)], False),
        (["bac"], False),
        ([{3: 1, 1: 2, 2: 3}], False),
    ],
)
def test_only_sequences_that_have_no_order_are_turned_round(calls, wanted):
    assert unordered([{"given": call} for call in calls]) == (["given"] if wanted else [])


@pytest.mark.parametrize("value", [[3, 1, 2], (3, 1, 2), np.array([3, 1, 2]), torch.tensor([3, 1, 2])])
def test_the_last_comes_first_and_the_kind_stays(value):
    turned = reverse(value)
    assert type(turned) is type(value) and [*map(int, turned)] == [2, 1, 3] and [*map(int, value)] == [3, 1, 2]


def test_a_copy_is_of_its_own():
    weight = torch.ones(2, requires_grad=True) * 2
    given = {"rows": [[1], (2,)], "kinds": {"a"}, "array": np.ones(2), "weight": weight, "name": "x"}
    copy = copy_of(given)
    copy["rows"][0].append(5), copy["kinds"].add("b"), copy["array"].fill(7), copy["weight"].fill_(9)
    assert given["rows"] == [[1], (2,)] and given["kinds"] == {"a"} and given["array"].tolist() == [1, 1]
    assert weight.tolist() == [2, 2] and copy["name"] == "x"
