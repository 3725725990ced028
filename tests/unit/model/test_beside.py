"""What a removed part gives back to the model's own phases."""

from dataclasses import replace

import numpy as np
import pytest
from pipelines import pipeline

from unstall.model import Changes, Timed, knowing, predict
from unstall.model.beside import apart_s, stalls, warmed
from unstall.model.caches import (
    AFTER_MATH_S,
    BETWEEN_CALLS_S,
    BETWEEN_CALLS_SHARE,
    COLD_S,
    COLD_SHARE,
    NEAR_SHARE,
)
from unstall.model.parts import DATA, Parts
from unstall.model.pipeline import MODEL

BODY = {"forward": 0.003, "backward": 0.004, "optimizer": 0.002, "callback": 0.05}
LOG = ("train", "log")


def loop(**settings):
    return pipeline(service=0.001, workers=0, body=BODY, **settings)


def model_s(found):
    return sum(found.phase_s(name) for name in ("forward", "backward", "optimizer"))


def test_without_long_other_code_the_model_finds_its_caches_warm():
    before = pipeline(service=0.001, workers=0, body={**BODY, "optimizer": 0.0005})
    after = warmed(before, before.scale_phase("callback", 0.0))
    assert model_s(before) - model_s(after) == pytest.approx(sum(COLD_S[name] for name in MODEL), rel=0.15)
    assert after.service_s == pytest.approx(0.001 - COLD_S[DATA], rel=0.05)
    speedup = predict(before, Changes(scales={"callback": 0.0})).speedup
    assert speedup > 1.08 * 0.06 / 0.01


def test_forward_comes_after_the_optimizer_and_stays_cold_by_it():
    def gained(optimizer_s):
        before = pipeline(service=0.001, workers=0, body={**BODY, "optimizer": optimizer_s})
        return before.phase_s("forward") - warmed(before, before.scale_phase("callback", 0.0)).phase_s("forward")

    assert gained(0.02) < 0.3 * gained(0.0005)
    before = pipeline(service=0.0, workers=0, body={"forward": 0.001, "optimizer": 0.02})
    assert warmed(before, before.scale_phase("optimizer", 0.0)).phase_s("forward") < 0.0007


def test_more_other_code_costs_the_model_time():
    before = pipeline(service=0.001, workers=0, body={**BODY, "callback": 0.002})
    assert model_s(warmed(before, before.scale_phase("callback", 10.0))) > model_s(before) + 0.0005


def test_after_much_mathematics_the_rest_finds_its_caches_cold():
    before = pipeline(
        service=0.0, workers=0, body={"forward": 0.05, "backward": 0.05, "optimizer": 0.001, "other": 0.01}
    )
    without = before.scale_phase("forward", 0.0).scale_phase("backward", 0.0)
    after = warmed(before, without)
    for name in ("optimizer", "other"):
        assert 0.3 * AFTER_MATH_S[name] < before.phase_s(name) - after.phase_s(name) < AFTER_MATH_S[name]
    half = warmed(before, before.scale_phase("forward", 0.0))
    assert half.phase_s("backward") == pytest.approx(0.05, rel=0.05), "of large ones it is little"
    assert after.phase_s("other") < half.phase_s("other") < before.phase_s("other")


def test_a_small_phase_has_little_to_lose():
    before = pipeline(service=0.0, workers=0, body={"forward": 0.0002, "callback": 0.1})
    after = warmed(before, before.scale_phase("callback", 0.0))
    share = COLD_SHARE["forward"] + NEAR_SHARE["forward"]
    assert after.phase_s("forward") == pytest.approx(0.0002 / (1 + share), rel=1e-3)


@pytest.mark.parametrize("seconds", [0.0001, 0.001, 0.03])
def test_what_is_taken_out_comes_back_with_its_cause(seconds):
    before = pipeline(service=0.002, workers=0, body={"forward": seconds, "other": 0.001, "callback": 0.01})
    less = warmed(before, before.scale_phase("callback", 0.5))
    again = warmed(less, less.scale_phase("callback", 2.0))
    assert less.phase_s("forward") < before.phase_s("forward")
    assert again.phase_s("forward") == pytest.approx(before.phase_s("forward"), rel=0.1)
    assert again.service_s == pytest.approx(before.service_s, rel=0.05)


def test_what_threads_waited_for_a_core_goes_with_the_cause():
    wait = np.tile([0.0, 0.002, 0.0, 0.004], (50, 1))
    before = replace(loop(), threads=2, wait=wait)
    half = warmed(before, before.scale_phase("callback", 0.5))
    none = warmed(before, before.scale_phase("callback", 0.0))
    assert none.wait[:, 1] == pytest.approx(0.002 * 0.001 / 0.055, rel=0.1)
    assert half.wait[:, 1] == pytest.approx(0.002 * 0.028 / 0.055, rel=0.1)
    assert none.wait[:, 3] == pytest.approx(0.0)


@pytest.mark.parametrize(("workers", "kept"), [(2, 0.25), (0, 0.0)])
def test_what_workers_took_a_core_for_goes_with_them(workers, kept):
    before = pipeline(service=0.02, workers=2, body=BODY)
    before = replace(before, threads=2, wait=np.full((50, 4), 0.002))
    after = replace(before.scale_service(0.25), layout=replace(before.layout, workers=workers))
    assert warmed(before, after).wait[0] == pytest.approx([0.002 * kept] * 3 + [0.002])


def test_steps_that_take_many_times_as_long_as_most_waited_as_far_as_the_scheduler_says():
    seen = np.array([[0.001, 0.003]] * 6 + [[0.001, 0.043], [0.081, 0.003]])
    assert stalls(seen, 1.0).sum(axis=0) == pytest.approx([0.08, 0.04], rel=0.05)
    assert stalls(seen, 0.005).sum() / 8 == pytest.approx(0.005)
    assert not stalls(seen, 0.0).any()
    assert not stalls(np.full((5, 2), 0.004), 1.0).any()


def test_on_a_device_the_mathematics_is_elsewhere():
    before = pipeline(service=0.001, workers=0, body=BODY, on_device=True)
    after = before.scale_phase("callback", 0.0)
    assert warmed(before, after) is after


def test_what_a_thread_of_its_own_does_is_not_between_the_steps():
    assert apart_s(replace(loop(), aside=frozenset({"callback"}))) == pytest.approx(0.001)


def called(emptied, *, share=0.05, calls=1.0, by_call=None):
    """A step of 9 ms of the model and 51 of a callback, nearly all of it in a function that was timed."""
    parts = Parts({"callback": ((frozenset({LOG}), 98), (frozenset(), 2))}, own=frozenset({LOG}))
    one = pipeline(service=0.0, workers=0, body={**BODY, "callback": 0.003}, parts=parts, measured_s=0.012)
    return knowing(one, "log", Timed(share, calls, emptied, emptied if by_call is None else by_call))


def test_a_function_that_goes_through_much_memory_costs_the_model_more_than_its_time_tells():
    gave = []
    for emptied in (0.0, 0.97):
        before = called(emptied, share=0.24)
        gave.append(model_s(before) - model_s(warmed(before, before.scale_phase("callback", 0.0), {LOG: 0.0})))
    assert gave[0] < 0.4 * gave[1]
    assert gave[1] > 0.8 * sum(COLD_S[name] for name in MODEL)


def test_what_is_between_calls_that_empty_the_caches_gets_quick_without_them():
    before = called(0.99, calls=100.0)
    left = before.phase_s("callback")
    kept = [warmed(before, before, {LOG: factor}).phase_s("callback") for factor in (0.0, 1.0)]
    assert kept == pytest.approx([left / (1 + BETWEEN_CALLS_SHARE * 0.99), left])
    few = called(0.99, calls=0.5)
    assert left - warmed(few, few, {LOG: 0.0}).phase_s("callback") == pytest.approx(0.5 * 0.99 * BETWEEN_CALLS_S)


def test_calls_that_are_short_and_leave_the_caches_as_they_were_cost_what_is_between_them_nothing():
    before = called(0.0, calls=100.0)
    assert warmed(before, before, {LOG: 0.0}).phase_s("callback") == pytest.approx(0.003, rel=0.01)


def test_a_phase_of_few_steps_is_no_stall():
    rollouts = np.where(np.arange(100)[:, None] % 10 == 9, 0.02, 0.0)
    assert not stalls(rollouts, delay_s=0.001).any()
    uneven = rollouts.copy()
    uneven[9] = 0.1
    assert stalls(uneven, delay_s=0.001).mean() == pytest.approx(0.1 * 0.75 / 100, rel=0.02)
