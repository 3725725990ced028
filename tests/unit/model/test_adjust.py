"""A recorded pipeline, as long as it takes now."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipelines import pipeline

from unstall.model.adjust import as_long_as, recorded_alone

BODY = {"forward": 0.004, "callback": 0.01, "other": 0.002}
ALONE = frozenset({"forward", "callback", "other", "data"})
SECONDS = st.floats(1e-5, 1.0)


def test_what_samples_told_apart_is_recorded_by_no_seam_alone():
    one = pipeline(service=0.02, workers=0, body=BODY)
    recorded = {"forward": 0.0041, "callback": 0.0, "other": 0.012, "data_wait": 0.021}
    assert recorded_alone(one, recorded) == {"forward", "data"}
    assert recorded_alone(one, {**BODY, "data_wait": 0.02}) == ALONE


@given(st.fixed_dictionaries(dict.fromkeys(("forward", "callback", "other", "data_wait"), SECONDS)))
def test_every_phase_takes_as_long_as_it_does_now(now):
    one = as_long_as(pipeline(service=0.02, workers=0, body=BODY), now, ALONE)
    assert one.seen_s("data") == pytest.approx(now["data_wait"])
    assert {name: one.seen_s(name) for name in BODY} == pytest.approx({name: now[name] for name in BODY})
    assert one.measured_s == pytest.approx(sum(now.values()))


def test_those_told_apart_share_what_is_left():
    one = as_long_as(
        pipeline(service=0.02, workers=0, body=BODY), {"forward": 0.01, "other": 0.024, "data_wait": 0.02},
        frozenset({"forward", "data"}),
    )  # fmt: skip
    assert one.seen_s("callback") == pytest.approx(0.02)
    assert one.seen_s("other") == pytest.approx(0.004)


def now(wait_s, takes_s):
    """A phase of 4 ms and so much waiting, that takes so long now."""
    one = replace(pipeline(workers=0, body={"forward": 0.004}), wait=np.full((50, 1), wait_s))
    after = as_long_as(one, {"forward": takes_s}, frozenset({"forward"}))
    assert after.seen_s("forward") == pytest.approx(takes_s)
    return after.wait.mean(), after.compute.mean()


def test_a_phase_that_is_shorter_now_waits_less_first():
    assert now(0.003, 0.005) == pytest.approx((0.001, 0.004))
    assert now(0.003, 0.002) == pytest.approx((0.0, 0.002))


def test_a_phase_that_is_longer_now_waits_more_where_it_waited_much():
    assert now(0.003, 0.014) == pytest.approx((0.010, 0.004))
    assert now(0.0004, 0.0088) == pytest.approx((0.0008, 0.008))


@pytest.mark.parametrize("settings", [{"workers": 2}, {"workers": 0, "on_device": True}])
def test_what_workers_or_a_device_make_it_wait_for_is_simulated(settings):
    one = pipeline(body=BODY, **settings)
    assert as_long_as(one, {"forward": 1.0}, ALONE) is one
