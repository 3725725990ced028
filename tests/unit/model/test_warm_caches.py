"""What is left of a step runs faster once other work has gone from between."""

from dataclasses import replace

import pytest
from pipelines import pipeline

from unstall.benchmark import thresholds
from unstall.model import Changes, predict
from unstall.model.changes import apply
from unstall.model.warm_caches import with_warm_caches

BODY = {"forward": 0.0003, "backward": 0.0005, "optimizer": 0.0002, "callback": 0.009}


@pytest.fixture
def before():
    return replace(pipeline(workers=0, service=0.0, body=BODY), measured_s=0.01)


def test_the_rest_takes_a_quarter_less_where_a_tenth_is_left(before):
    after = with_warm_caches(before, before.scale_phase("callback", 0.0))
    assert after.phase_s("forward") == pytest.approx(0.0003 * 10**-thresholds.WARMS)
    assert predict(before, Changes(scales={"callback": 0.0})).speedup == pytest.approx(10 * 10**thresholds.WARMS)


def test_the_loader_in_the_main_thread_is_other_work_too():
    before = pipeline(workers=0, service=0.009, body={"forward": 0.001})
    after = apply(before, Changes(scales={"data": 0.5}))
    factor = (0.0055 / 0.01) ** thresholds.WARMS
    assert after.phase_s("forward") == pytest.approx(0.001 * factor)
    assert after.service_s == pytest.approx(0.0045 * factor)


def test_waiting_is_not_computing(before):
    before = replace(before, wait=before.wait + 0.001)
    after = with_warm_caches(before, before.scale_phase("callback", 0.0))
    assert after.wait[0, 0] == 0.001


def test_where_memory_is_dear_more_is_saved(before):
    dear = replace(before, refetch_s=300e-9)
    after = with_warm_caches(dear, dear.scale_phase("callback", 0.0))
    assert after.phase_s("forward") < 0.0003 * 10**-thresholds.WARMS


@pytest.mark.parametrize(
    "changes",
    [
        Changes(scales={"backward": 0.0}),
        Changes(scales={"callback": 2.0}),
        Changes(scales={"callback": 1.0}),
    ],
)
def test_the_model_itself_and_more_work_change_nothing(before, changes):
    assert apply(before, changes).phase_s("forward") == before.phase_s("forward")


def test_work_of_workers_is_in_other_caches():
    before = pipeline(workers=2, service=0.009, body={"forward": 0.001})
    assert apply(before, Changes(scales={"data": 0.5})).phase_s("forward") == pytest.approx(0.001)
    assert apply(before, Changes(workers=0)).phase_s("forward") == pytest.approx(0.001)
    alone = pipeline(workers=0, service=0.009, body={"forward": 0.001})
    assert apply(alone, Changes(workers=2)).phase_s("forward") == pytest.approx(0.001)
