"""Threads of a team that waited for a core: how much of a recording that is, and what is left after a change."""

from dataclasses import replace

import numpy as np
import pytest
from pipelines import pipeline

from unstall.model import Changes, predict
from unstall.model.team_stalls import non_model_seconds, stalled_seconds, with_fewer_stalls

BODY = {"forward": 0.003, "backward": 0.004, "optimizer": 0.002, "callback": 0.05}


def stalled(*, workers, threads=2, service=0.001, **settings):
    """A program whose every phase waits 2 ms."""
    made = pipeline(service=service, workers=workers, body=BODY, threads=threads, **settings)
    return replace(made, wait=np.full((50, len(BODY)), 0.002))


def test_what_a_team_waited_for_goes_with_the_code_that_took_its_core():
    before = stalled(workers=0)
    after = with_fewer_stalls(before, before.scale_phase("callback", 0.0))
    left = 0.001 / (0.05 + 0.002 + 0.001)
    assert after.wait[0] == pytest.approx([0.002 * left] * 3 + [0.0], rel=0.01)


@pytest.mark.parametrize(("workers", "left"), [(2, 0.25), (0, 0.0)])
def test_what_workers_took_a_core_for_goes_with_them(workers, left):
    before = stalled(service=0.02, workers=2)
    after = replace(before.scale_service(0.25), layout=replace(before.layout, workers=workers))
    assert with_fewer_stalls(before, after).wait[0] == pytest.approx([0.002 * left] * 3 + [0.002])


def test_more_of_the_cause_makes_no_more_stalls():
    before = stalled(workers=0)
    after = before.scale_phase("callback", 10.0)
    assert with_fewer_stalls(before, after) is after


@pytest.mark.parametrize("settings", [{"threads": 1}, {"on_device": True}])
def test_without_a_team_nothing_stalls(settings):
    before = stalled(workers=0, **settings)
    after = before.scale_phase("callback", 0.0)
    assert with_fewer_stalls(before, after) is after


def test_a_prediction_counts_them():
    before = replace(stalled(workers=0), measured_s=0.068)
    free = Changes(scales={"callback": 0.0})
    assert predict(before, free).step_s < predict(replace(before, threads=1), free).step_s - 0.005


def test_steps_that_take_many_times_as_long_as_most_waited_as_far_as_the_scheduler_says():
    seen = np.array([[0.001, 0.003]] * 6 + [[0.001, 0.043], [0.081, 0.003]])
    assert stalled_seconds(seen, 1.0).sum(axis=0) == pytest.approx([0.08, 0.04], rel=0.05)
    assert stalled_seconds(seen, 0.005).sum() / 8 == pytest.approx(0.005)
    assert not stalled_seconds(seen, 0.0).any()
    assert not stalled_seconds(np.full((5, 2), 0.004), 1.0).any()


def test_a_phase_of_few_steps_is_no_stall():
    rollouts = np.where(np.arange(100)[:, None] % 10 == 9, 0.02, 0.0)
    assert not stalled_seconds(rollouts, 0.001).any()


def test_what_a_thread_of_its_own_does_is_not_between_the_steps():
    made = pipeline(service=0.001, workers=0, body=BODY)
    assert non_model_seconds(replace(made, aside=frozenset({"callback"}))) == pytest.approx(0.001)
