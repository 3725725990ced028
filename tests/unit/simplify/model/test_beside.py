"""What a removed part gives back to the model's own phases."""

from dataclasses import replace

import pytest
from pipelines import pipeline

from unstall.simplify.model import Changes, predict
from unstall.simplify.model.beside import COLD_S, apart_s, warmed

BODY = {"forward": 0.003, "backward": 0.004, "optimizer": 0.002, "callback": 0.05}


def loop(**settings):
    return pipeline(service=0.001, workers=0, body=BODY, **settings)


def model_s(found):
    return sum(found.phase_s(name) for name in ("forward", "backward", "optimizer"))


def test_without_long_other_code_the_model_finds_its_caches_warm():
    before = loop()
    after = warmed(before, before.scale_phase("callback", 0.0))
    assert model_s(before) - model_s(after) == pytest.approx(0.85 * sum(COLD_S.values()), rel=0.1)
    speedup = predict(before, Changes(scales={"callback": 0.0})).speedup
    assert speedup > 1.08 * 0.06 / 0.01


def test_more_other_code_costs_the_model_time():
    before = pipeline(service=0.001, workers=0, body={**BODY, "callback": 0.002})
    assert model_s(warmed(before, before.scale_phase("callback", 10.0))) > model_s(before) + 0.0005


def test_a_phase_never_gets_faster_than_a_quarter():
    before = pipeline(service=0.001, workers=0, body={"forward": 0.0002, "callback": 0.05})
    after = warmed(before, before.scale_phase("callback", 0.0))
    assert after.phase_s("forward") == pytest.approx(0.25 * 0.0002)


def test_what_threads_waited_for_a_core_goes_with_the_cause():
    before = replace(loop(), team_delay_s=0.006)
    half = warmed(before, before.scale_phase("callback", 0.5))
    none = warmed(before, before.scale_phase("callback", 0.0))
    assert model_s(none) == pytest.approx(0.009 - 0.006 * 0.05 / 0.051, rel=0.03)
    assert model_s(half) > model_s(none) + 0.002


@pytest.mark.parametrize("setting", [{"workers": 2}, {"on_device": True}])
def test_beside_workers_and_on_a_device_other_laws_hold(setting):
    before = pipeline(**{"service": 0.001, "workers": 0, "body": BODY, **setting})
    after = before.scale_phase("callback", 0.0)
    assert warmed(before, after) is after


def test_what_a_thread_of_its_own_does_is_not_between_the_steps():
    assert apart_s(replace(loop(), aside=frozenset({"callback"}))) == pytest.approx(0.001)
