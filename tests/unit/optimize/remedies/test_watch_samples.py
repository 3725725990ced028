"""Samples that are kept for as long as nothing that their dataset holds changes."""

from __future__ import annotations

import copy
import dataclasses
import random
from types import SimpleNamespace

import pytest
from optimize_builders import make_module

from unstall.optimize.remedies.watch_samples import _method, with_watch
from unstall.optimize.source.errors import AnalysisRefused

torch = pytest.importorskip("torch")

TEXT = '''
"""A dataset of numbers."""

import random


class Numbers:
    """Made by a function that is given."""

    def __init__(self, make):
        self.make = make
        self.parts = {"offset": 0, "table": [1, 2]}
        self.jitter = False

    def __len__(self):
        return 4

    def __getitem__(self, index: int) -> list:
        """One of them."""
        if self.jitter:
            return [random.random()]
        return [self.make(index)]
'''


class Counted:
    """Calls of what makes a sample."""

    def __init__(self):
        self.calls = 0

    def __call__(self, index):
        Counted.total += 1
        return torch.full((3,), float(index))


@pytest.fixture
def numbers():
    """A dataset with the change in it, and the class whose ``total`` counts the samples that it makes."""
    Counted.total = 0
    module = make_module(TEXT)
    _, method = _method(module, line_of(TEXT))
    space: dict = {}
    exec(compile(with_watch(module, method).code, "numbers_module.py", "exec"), space)
    return space["Numbers"](Counted())


def line_of(text):
    return next(number for number, line in enumerate(text.splitlines(), 1) if "def __getitem__" in line)


def test_a_sample_is_made_once_and_given_as_a_copy(numbers):
    first = numbers[2]
    first[0].add_(1)
    assert numbers[2][0].tolist() == [2.0, 2.0, 2.0] and numbers[3][0].tolist() == [3.0, 3.0, 3.0]
    assert numbers[2] is not first and Counted.total == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda dataset: setattr(dataset, "make", Counted()),
        lambda dataset: setattr(dataset.make, "calls", 5),
        lambda dataset: dataset.parts.update(offset=object()),
        lambda dataset: dataset.parts["table"].append(3),
        lambda dataset: setattr(dataset, "new", None),
    ],
)
def test_what_the_dataset_holds_is_set_otherwise(numbers, change):
    for _ in range(2):
        numbers[1]
    change(numbers)
    for _ in range(3):
        numbers[1]
    assert Counted.total == 2


def test_a_tensor_that_it_holds_is_written_in_place(numbers):
    numbers.parts["scale"] = torch.ones(2)
    numbers[0], numbers[0]
    numbers.parts["scale"].mul_(2)
    numbers[0], numbers[0]
    assert Counted.total == 2


def test_what_draws_random_numbers_is_made_each_time(numbers):
    numbers.jitter = True
    random.seed(3)
    expected = [random.random() for _ in range(4)]
    random.seed(3)
    assert [numbers[1][0] for _ in range(4)] == expected


def test_what_the_making_itself_leaves_there_is_no_change(numbers):
    class Scales:
        def __call__(self, index):
            Counted.total += 1
            self.scale = object()
            return index

    numbers.make = Scales()
    assert [numbers[index % 2][0] for index in range(6)] == [0, 1, 0, 1, 0, 1] and Counted.total == 2


def test_a_dataset_that_is_changed_all_the_time_is_watched_no_longer(numbers):
    for _ in range(150):
        numbers.epoch = object()
        numbers[0]
    assert Counted.total == 150
    numbers[0]
    assert Counted.total == 151


def test_a_dataset_that_holds_too_much_is_not_watched(numbers):
    numbers.many = [[[] for _ in range(32)] for _ in range(32)]
    for _ in range(3):
        numbers[0]
    assert Counted.total == 3


def test_what_cannot_be_written_is_made_each_time(numbers):
    numbers.make = lambda index: lambda: index
    assert numbers[1][0]() == 1 and numbers[1][0]() == 1


def test_a_copy_of_the_dataset_begins_anew(numbers):
    numbers[1]
    other = copy.deepcopy(numbers)
    other[1]
    assert Counted.total == 2
    assert other.samples_kept is not numbers.samples_kept


def test_a_frozen_dataclass_keeps_its_samples_too():
    text = (
        "import dataclasses\n\n\n@dataclasses.dataclass(frozen=True)\nclass Points:\n    make: object\n\n"
        "    def __getitem__(self, index):\n        return self.make(index)\n"
    )
    module = make_module(text)
    space: dict = {}
    exec(with_watch(module, _method(module, 8)[1]).code, space)
    made: list[int] = []
    points = space["Points"](lambda index: made.append(index) or index)
    assert [points[1], points[1], points[2]] == [1, 1, 2] and made == [1, 2]
    assert dataclasses.asdict(points).keys() == {"make"}


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("        if self.jitter:\n            return [random.random()]\n", "        random.random()\n", "may differ"),
        ("index: int)", "index: int, more=None)", "more than an index"),
        ("    def __getitem__", "    @staticmethod\n    def __getitem__", "more than an index"),
    ],
)
def test_what_differs_every_time_is_left_alone(before, after, why):
    text = TEXT.replace(before, after)
    with pytest.raises(AnalysisRefused, match=why):
        _method(make_module(text), line_of(text))


def test_workers_keep_nothing(monkeypatch, numbers):
    monkeypatch.setattr(torch.utils.data, "get_worker_info", lambda: SimpleNamespace(id=0))
    numbers[1], numbers[1]
    assert Counted.total == 2
