"""The measured step with host code told apart by the samples."""

from __future__ import annotations

import pytest
from factory import CALL, NEXT, WORKER, WORKER_PID, Source, features, lib, measurement, stack, waiting
from hypothesis import given
from hypothesis import strategies as st

from unstall.diagnose.features import build, network_share
from unstall.diagnose.positions import HOST_PLACES
from unstall.records.observations import Frame
from unstall.records.vocabulary import PHASE_NAMES

PLOT = lib("matplotlib/figure.py", "savefig")
USER = Frame("work", "/home/me/train.py", 10)
GYM = lib("gymnasium/core.py", "step")


def test_time_that_no_seam_claimed_goes_where_the_samples_are():
    f = features(
        {"forward": 0.04, "other": 0.06},
        samples=[stack(USER, PLOT, count=60), stack(USER, CALL, count=40)],
    )
    assert f.seconds["callback"] == pytest.approx(0.06, rel=0.05)
    assert f.seconds["other"] == pytest.approx(0, abs=0.003)
    assert f.seconds["forward"] == pytest.approx(0.04)


def test_only_what_goes_beyond_the_timed_phase_is_claimed():
    f = features({"env": 0.06, "other": 0.04}, samples=[stack(USER, GYM, count=60), stack(USER, count=40)])
    assert f.seconds["env"] == pytest.approx(0.06, rel=0.02)
    assert f.seconds["other"] == pytest.approx(0.04, rel=0.02)


def test_a_timer_knows_more_than_the_samples_inside_it():
    """By chance a few more samples than the timed seconds explain are in the model; the loss is in none of it."""
    loss = lib("torch/nn/functional.py", "cross_entropy")
    samples = [stack(USER, CALL, count=45), stack(USER, loss, count=5), stack(USER, count=50)]
    f = features({"forward": 0.04, "other": 0.06}, samples=samples)
    assert f.seconds["forward"] == pytest.approx(0.04 + 0.06 * 5 / 55, rel=0.02)


def test_calls_that_the_timer_does_not_see_are_claimed():
    f = features({"forward": 0.01, "other": 0.09}, samples=[stack(USER, CALL, count=60), stack(USER, count=40)])
    assert f.seconds["forward"] == pytest.approx(0.01 + 0.09 * 0.05 / 0.09, rel=0.02)


def test_too_few_samples_change_nothing():
    f = features({"forward": 0.04, "other": 0.06}, samples=[stack(USER, PLOT, count=5)])
    assert f.seconds == {"forward": 0.04, "other": 0.06}
    assert f.places == {"other": 0.06}


COUNTS = st.integers(0, 200)


@given(
    st.fixed_dictionaries({name: st.floats(0, 1) for name in ("data_wait", "forward", "env", "callback", "other")}),
    COUNTS, COUNTS, COUNTS, COUNTS, COUNTS,
)  # fmt: skip
def test_no_time_is_made_or_lost(phases, plotting, model, host, env, data):
    phases = {**phases, "optimizer": 0.1}
    samples = [
        stack(*frames, count=count)
        for frames, count in [
            ((USER, PLOT), plotting),
            ((USER, CALL), model),
            ((USER,), host),
            ((USER, GYM), env),
            ((USER, NEXT), data),
        ]
        if count
    ]
    m = measurement(phases, samples=samples)
    f = build(m)
    assert sum(f.seconds.values()) == pytest.approx(m.step.mean)
    assert all(seconds >= 0 for seconds in f.seconds.values())
    assert sum(f.places.values()) == pytest.approx(f.seconds["other"], abs=1e-9)
    assert set(f.places) <= set(HOST_PLACES)
    refined = f.refined_phases()
    assert sum(phase.share for phase in refined) == pytest.approx(1.0)
    assert [phase.name for phase in refined] == [name for name in PHASE_NAMES if f.seconds.get(name, 0) > 0]


def test_refined_phases_keep_what_is_known_of_them():
    f = features({"data_wait": waiting("data_wait", 0.05, blocked=0.03, network=0.02), "forward": 0.05})
    wait = next(phase for phase in f.refined_phases() if phase.name == "data_wait")
    assert (wait.blocked_s, wait.network_s, wait.share) == (0.03, 0.02, 0.5)
    assert network_share(f, "data_wait") == pytest.approx(0.4)
    assert network_share(f, "env") == 0


def test_figures_of_the_step():
    f = features({"data_wait": 0.02, "forward": 0.03, "backward": 0.04, "optimizer": 0.01}, cores=2.0, main_cpu_s=0.1)
    assert f.step_s == pytest.approx(0.1)
    assert f.model_s == pytest.approx(0.08)
    assert f.share("forward", "backward") == pytest.approx(0.7)
    assert f.demand == pytest.approx(0.5)
    assert f.headroom_without(0.05) == pytest.approx(2.0)
    assert f.headroom_without(0.0) == pytest.approx(1.0)


@given(st.floats(0, 10))
def test_headroom_is_at_least_one_and_finite(seconds):
    assert 1.0 <= features({"forward": 0.1}).headroom_without(seconds) <= 100.0001


def test_idle_workers_are_left_out_of_those_that_work():
    queue = lib("torch/multiprocessing/queue.py", "get")
    f = features(
        {"forward": 0.1},
        samples=[stack(WORKER, queue, pid=WORKER_PID, count=30), stack(WORKER, USER, pid=WORKER_PID, count=10)],
    )
    assert [placed.count for placed in f.worker_samples()] == [10]
    assert f.worker_total == 40


def test_plain_python_in_a_modules_forward_is_not_the_models_mathematics(tmp_path):
    code = Source(
        tmp_path / "net.py",
        """
        def forward(self, x):
            total = 0
            for row in x:
                total += row[0] * row[1]  # loop
            return total
        """,
    )
    loop = stack(USER, CALL, code.at("forward", "# loop"), count=75)
    f = features({"forward": 0.08, "backward": 0.02}, samples=[loop, stack(USER, CALL, count=25)])
    assert f.python_in_forward == pytest.approx(0.06)
    assert f.model_s == pytest.approx(0.04)


def test_a_sizeable_rest_names_its_functions():
    tidy, sort = Frame("tidy", "/home/me/train.py", 20), Frame("sort", "/home/me/lists.py", 5)
    samples = [stack(USER, tidy, count=30), stack(USER, sort, count=10), stack(USER, CALL, count=60)]
    phases = {
        phase.name: phase for phase in features({"forward": 0.06, "other": 0.04}, samples=samples).refined_phases()
    }
    assert [(line.function, line.line) for line in phases["other"].functions] == [("tidy", 20), ("sort", 5)]
    assert sum(line.share for line in phases["other"].functions) == pytest.approx(phases["other"].share)
    assert phases["forward"].functions == []


def test_a_small_rest_names_none():
    phases = features({"forward": 0.095, "other": 0.005}, samples=[stack(USER, count=10), stack(USER, CALL, count=90)])
    assert all(not phase.functions for phase in phases.refined_phases())
