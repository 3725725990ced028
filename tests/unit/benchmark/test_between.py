"""What recurs between steps is told apart from the steps."""

from __future__ import annotations

import numpy as np
import pytest
from spanfactory import Recording, loop_of, train

from unstall.benchmark.between import between
from unstall.child.layout import NOGRAD
from unstall.records.measurements import SeamSite

SITES = [
    SeamSite("~forward", "train.py", "train", 30),
    SeamSite(
        "~forward", "train.py", "<genexpr>", 81, (("train.py", "evaluate", 80), ("train.py", "main", 99)), grad=False
    ),
]


def epochs(count, evaluate, steps=40):
    r = Recording()
    for _ in range(count):
        train(r, steps)
        evaluate(r)
    return loop_of(r)


def measured(loop):
    return between(loop, np.ones(len(loop), bool), SITES)


def by_hand(r):
    for _ in range(10):
        r.do("~forward", 0.2, flags=NOGRAD)


def test_evaluation_by_hand_is_named_and_leaves_the_median_step():
    loop = epochs(4, by_hand)
    found = measured(loop)
    assert (found.count, found.function, found.line) == (4, "evaluate", 80)
    assert found.each_s == pytest.approx(2.0, abs=0.01)
    assert loop.durations.mean() - found.mean_s == pytest.approx(np.median(loop.durations), rel=0.02)


def test_episodes_in_which_a_policy_is_evaluated_are_named_by_who_steps_them():
    r = Recording()
    for _ in range(4):
        for env, steps in ((1, 40), (2, 20)):
            for _ in range(steps):
                r.do("~forward", 0.01, flags=NOGRAD)
                r.do("~env.step", 0.1, arg=env)
                if env == 1:
                    r.do("~optimizer", 0.01)
    acts = SeamSite("~forward", "train.py", "act", 12, (("train.py", "main", 90),), grad=False)
    steps = [SeamSite("~env.step", "train.py", name, 1, evaluates=name == "rate") for name in ("main", "rate")]
    loop = loop_of(r)
    found = between(loop, np.ones(len(loop), bool), [acts, *steps])
    assert (found.count, found.function) == (3, "rate")
    assert found.each_s == pytest.approx(20 * 0.11, rel=0.05)


def test_a_long_pause_that_recurs_is_told_without_a_name():
    found = measured(epochs(4, lambda r: r.spend(3.0)))
    assert (found.count, found.file) == (3, "")
    assert found.each_s == pytest.approx(3.0, abs=0.01)


@pytest.mark.parametrize("pauses", [0, 1])
def test_steady_steps_and_one_pause_have_nothing_between(pauses):
    r = Recording()
    r.do("~data.iter", 0.001)
    for number in range(3):
        train(r, 40) if not number else [train_more(r) for _ in range(40)]
        r.spend(3.0 if number < pauses else 0.0)
    assert measured(loop_of(r)) is None


def train_more(r):
    r.do("~data.next", 0.010)
    r.do("~forward", 0.020)
    r.do("~backward", 0.030)
    r.do("~optimizer", 0.005, arg=2)


def test_what_is_done_every_few_steps_is_part_of_training():
    r = Recording()
    for number in range(100):
        train_more(r)
        r.spend(2.0 if number % 5 == 0 else 0.0)
    assert measured(loop_of(r)) is None


def test_a_teacher_without_gradients_in_every_step_is_not_between():
    r = Recording()
    for _ in range(100):
        r.do("~forward", 0.020, arg=9, flags=NOGRAD)
        train_more(r)
    assert measured(loop_of(r)) is None
