"""Settings of the change that the program prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.prove.left_behind.echoes import Echo, masked, of_change
from unstall.prove.left_behind.effects import STDOUT, Content, Effects
from unstall.prove.left_behind.effects_comparison import EffectsComparison
from unstall.prove.trees import Sides

TRAIN = Path("/program/train.py")
WORKERS = Echo("num_workers", "4", "0")


def echoes(before, after):
    return of_change(Sides({TRAIN: before.encode()}, {TRAIN: after.encode()}))


@pytest.mark.parametrize(
    "source",
    [
        "loader = DataLoader(data, num_workers=4)",
        "config.num_workers = 4",
        "num_workers: int = 4",
        'config = {"num_workers": 4}',
        'parser.add_argument("--num-workers", "-n", type=int, default=4)',
        "def main(rate, num_workers=4, *, other=1): pass",
        "def main(*, num_workers=4): pass",
    ],
)
def test_each_way_to_set_something(source):
    assert echoes(source, source.replace("4", "0")) == [WORKERS]


def test_what_is_set_to_the_same_to_several_values_or_to_no_number_is_none():
    assert echoes("f(a=1, b=2)", "f(a=1)") == []
    assert echoes("f(a=1); g(a=2)", "f(a=3); g(a=4)") == []
    assert echoes("f(a='x')", "f(a='y')") == []
    assert echoes("f(a=", "f(a=1)") == []
    assert echoes("f(on=False)", "f(on=True)") == [Echo("on", "False", "True")]


@pytest.mark.parametrize(
    "line",
    ["{'num_workers': 4, 'rate': 0.1}", "num_workers: 4", '"num_workers": 4,', "num_workers=4", "num_workers = 4"],
)
def test_a_printed_setting_is_not_compared(line):
    assert masked(line, [WORKERS]) == masked(line.replace("4", "0"), [WORKERS])


@pytest.mark.parametrize("line", ["num_workers: 3", "workers: 4", "num_workers: 4.5", "loss 4", "num_workers_of: 4"])
def test_all_else_is(line):
    assert masked(line, [WORKERS]) == line


def effects(text):
    return Effects(0, "", {STDOUT: Content.of(text.encode())})


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        ("num_workers: 4\nloss 0.4\n", "num_workers: 0\nloss 0.4\n", True),
        ("num_workers: 4\nloss 0.4\n", "num_workers: 0\nloss 0.5\n", False),
        ("num_workers: 4\n", "num_workers: 2\n", False),
        ("num_workers: 8\n", "num_workers: 0\n", False),
    ],
)
def test_texts_are_compared_without_them(before, after, is_same):
    comparison = EffectsComparison([effects(before)], echoed=[WORKERS])
    assert (comparison.first(effects(after)) is None) == is_same
    assert comparison.masked == [STDOUT] * ("num_workers: 2" not in after)
