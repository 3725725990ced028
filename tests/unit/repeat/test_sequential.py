"""The gate's decision rule: right on plain cases, and rarely wrong under noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.repeat.sequential import SequentialPlan, decide, trimmed


def _pairs(slowdown, noise, count=32, seed=0):
    return math.log(slowdown) + noise * np.random.default_rng(seed).standard_normal(count)


@pytest.mark.parametrize(
    "slowdown, decision", [(1.0, "pass"), (0.7, "pass"), (1.02, "pass"), (1.1, "regression"), (2, "regression")]
)
def test_plain_cases_end_at_the_first_look(slowdown, decision):
    assert decide(_pairs(slowdown, 0.002, 4), SequentialPlan(), last=False).decision == decision


@pytest.mark.parametrize("count", [0, 1, 3, 5, 7])
def test_between_looks_it_goes_on(count):
    assert decide(_pairs(2.0, 0.01, count), SequentialPlan(), last=False).decision == "go on"


def test_too_few_pairs_tell_nothing():
    found = decide(_pairs(2.0, 0.01, 2), SequentialPlan(), last=True)
    assert (found.decision, found.slowdown) == ("cannot tell", None)


def test_too_much_noise_is_told():
    assert decide(_pairs(1.05, 0.5), SequentialPlan(), last=True).decision == "cannot tell"


def test_a_slowdown_within_what_is_allowed_passes():
    found = decide(_pairs(1.03, 0.01), SequentialPlan(), last=True)
    assert found.decision == "pass" and found.slowdown.low > 1


def test_one_wild_pair_does_not_decide():
    pairs = _pairs(1.0, 0.01, 16)
    pairs[3] = math.log(3)
    assert decide(pairs, SequentialPlan(most=16), last=True).decision == "pass"


@pytest.mark.parametrize(
    "most, looks, ends",
    [
        (4, [], [4]),
        (12, [4, 8], [12]),
        (32, [4, 8, 16], [32]),
        (48, [4, 8, 16], [32, 48]),
        (128, [4, 8, 16], [32, 64, 128]),
    ],
)
def test_looks_double_until_the_end(most, looks, ends):
    plan = SequentialPlan(most=most)
    assert (plan.looks(), plan.ends()) == (looks, ends)
    assert sum(plan.end_share(count) for count in ends) == pytest.approx(0.5)
    assert [plan.next_look(count) for count in (1, most)] == [(looks + ends)[0], most]


def test_an_end_that_time_brings_forward_spends_the_share_of_the_planned_one():
    plan = SequentialPlan(most=128)
    assert [plan.end_share(count) for count in (3, 32, 33, 64, 65, 128)] == [0.25, 0.25, 0.125, 0.125, 0.125, 0.125]


def test_where_32_pairs_do_not_tell_more_are_run():
    pairs = _pairs(1.1, 0.25, 128)
    assert decide(pairs[:32], SequentialPlan(), last=False).decision == "go on"
    assert decide(pairs[:32], SequentialPlan(most=32), last=True).decision == "cannot tell"
    assert decide(pairs, SequentialPlan(), last=True).decision == "regression"


def test_a_single_recorded_baseline_makes_it_less_sure():
    pairs = _pairs(1.1, 0.02, 8)
    alone, recorded = (decide(pairs, SequentialPlan(recorded=flag), last=True).slowdown for flag in (False, True))
    assert recorded.low < alone.low and recorded.high > alone.high


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=40))
def test_the_trimmed_mean_is_that_of_the_middle(values):
    mean, error, degrees = trimmed(np.array(values))
    assert min(values) - 1e-9 <= mean <= max(values) + 1e-9
    assert error >= 0 and degrees == len(values) - 2 * int(0.2 * len(values)) - 1


def _share(decision, slowdown, noise, experiments=400):
    generator = np.random.default_rng(0)
    plan, found = SequentialPlan(), 0
    for _ in range(experiments):
        pairs = math.log(slowdown) + noise(generator, plan.most)
        for count in (*plan.looks(), *plan.ends()):
            made = decide(pairs[:count], plan, last=count == plan.most).decision
            if made != "go on":
                break
        found += made == decision
    return found / experiments


def _gaussian(generator, count):
    return 0.05 * generator.standard_normal(count)


def _with_bursts(generator, count):
    signs = generator.choice([-1, 0, 1], count, p=[0.08, 0.84, 0.08])
    return 0.03 * generator.standard_normal(count) + 0.2 * signs


def _large(generator, count):
    return 0.12 * generator.standard_normal(count)


@pytest.mark.parametrize("noise", [_gaussian, _with_bursts, _large])
def test_identical_code_is_hardly_ever_called_a_regression_and_ten_per_cent_nearly_always(noise):
    assert _share("regression", 1.0, noise) <= 0.01
    assert _share("regression", 1.1, noise) >= 0.95
