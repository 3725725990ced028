"""Steps that grow with the steps made, and all that only looks like it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unstall.benchmark.slowing import slowing
from unstall.benchmark.steps import Loop
from unstall.records.observations import Frame, MachinePoint, Observation, ResourcePoint, StackSample, StackWindow

PID = 100
seeds = st.integers(0, 2**32 - 1)


def loop(forward, other, gap=None):
    """Steps of these seconds in the forward pass and in the program's own code."""
    names = ("forward", "other")
    phases = np.column_stack([np.broadcast_to(part, len(forward)) for part in (forward, other)]).astype(float)
    edges = 100 + np.concatenate([[0], phases.sum(axis=1).cumsum()])
    zeros = np.zeros_like(phases)
    gap = np.zeros(len(phases), bool) if gap is None else gap
    calls = np.zeros(len(phases), int)
    return Loop("optimizer", edges[:-1], edges[1:], phases, zeros, zeros, zeros, zeros, gap, calls, names)


def trend(forward, other, *, gap=None, **seen):
    steps = loop(forward, other, gap)
    return slowing(steps, np.ones(len(steps), bool), Observation(99.0, **seen), PID)


def noise(seed, size, spread=0.1):
    return np.exp(spread * np.random.default_rng(seed).standard_normal(size))


@settings(max_examples=40, deadline=None)
@given(seed=seeds, rate=st.floats(0.3, 20), size=st.integers(120, 3000))
def test_growth_is_found_with_its_rate_and_its_phase(seed, rate, size):
    other = 0.01 * (1 + 2 * rate * np.arange(size) / size) * noise(seed, size, 0.05)
    found = trend(np.full(size, 0.01), other)
    assert found is not None and found.phase == "other"
    assert found.low <= found.per_1000 <= found.high
    assert found.per_1000 == pytest.approx(rate * 1000 / size, rel=0.35)
    assert found.end_s / found.begin_s == pytest.approx(1 + rate, rel=0.2)
    assert found.begin_s <= found.early_s <= found.late_s <= found.end_s


@settings(max_examples=30, deadline=None)
@given(seed=seeds, factor=st.floats(0.01, 1000))
def test_the_rate_does_not_depend_on_the_unit_of_time(seed, factor):
    other = (1 + np.arange(300) / 100) * noise(seed, 300)
    one, scaled = trend(np.ones(300), other), trend(factor * np.ones(300), factor * other)
    assert one is not None and scaled is not None
    assert scaled.per_1000 == pytest.approx(one.per_1000, rel=1e-6)


@pytest.mark.parametrize("grows", [0.0, 5.0])
def test_what_recurs_between_steps_and_grows_is_found(grows):
    """Rollouts after every fourth step, whose steps are the same from first to last."""
    gap = np.arange(800) % 4 == 3
    rollout = 0.1 * (1 + grows * np.arange(800) / 800) * noise(1, 800, 0.05)
    found = trend(np.full(800, 0.002), 0.001 + np.where(gap, rollout, 0.0), gap=gap)
    assert (found is not None) == bool(grows)
    if found is not None:
        assert found.phase == "other" and found.end_s / found.begin_s == pytest.approx(1 + grows, rel=0.2)


def test_noise_of_any_kind_is_hardly_ever_taken_for_growth():
    alarms = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(48, 2000))
        lengths = rng.lognormal(0, rng.uniform(0.05, 1.0), size)  # batches of variable lengths
        busy = np.repeat(rng.uniform(1, 2, size // 40 + 1), 40)[:size]  # neighbours that come and go
        alarms += trend(0.02 * lengths, 0.01 * busy * noise(seed, size)) is not None
    assert alarms <= 2


@pytest.mark.parametrize(("growth", "told"), [(0.7, False), (3.0, True)])
def test_beside_other_programs_growth_must_be_more_than_a_shared_core_makes(growth, told):
    """The program holds one core, and others take half a core to one more, ever more of it as the steps grow."""
    other = 0.01 * np.linspace(1, 1 + growth, 400) * noise(0, 400, 0.02)
    seconds = np.linspace(0, float(other.sum()), 50)
    points = [ResourcePoint(100 + t, PID, t, 0.0, 1) for t in seconds]
    machine = [MachinePoint(100 + t, t + 0.5 * t + 0.25 * t * t / seconds[-1]) for t in seconds]
    alone = [MachinePoint(100 + t, t) for t in seconds]
    assert trend(np.zeros(400), other, points=points, machine=alone) is not None
    assert (trend(np.zeros(400), other, points=points, machine=machine) is not None) is told


def test_a_machine_that_drifts_slows_all_phases_alike():
    slower = np.linspace(1, 2, 400)
    assert trend(0.02 * slower, 0.01 * slower) is None
    assert trend(0.001 * slower, 0.007 * slower) is None


def test_what_grows_many_times_takes_the_caches_from_the_rest_which_grows_with_it():
    grows = np.linspace(1, 3.5, 400)
    found = trend(0.001 * np.linspace(1, 3, 400), 0.007 * grows)
    assert found is not None and found.phase == "other"


@pytest.mark.parametrize(
    "other",
    [
        np.where(np.arange(400) < 40, 0.002, 0.02),  # workers ran ahead at first
        0.02 * (1 - np.exp(-np.arange(400) / 30)),  # a cache fills up
        np.where(np.arange(400) < 200, 0.01, 0.03),  # a neighbour comes, or a stage begins
        np.where(np.arange(400) % 50 == 0, 0.5, 0.01),  # something every fifty steps
        0.03 - 0.00005 * np.arange(400),  # it becomes faster
        0.01 + 0.02 * (np.arange(400) % 100) / 100,  # sorted by length in every epoch
    ],
)
def test_warm_up_caches_jumps_periods_and_epochs_are_no_growth(other):
    assert trend(np.full(400, 0.01), other * noise(1, 400, 0.03)) is None


def test_what_is_done_every_so_many_steps_and_grows_is_found():
    redraw = np.where(np.arange(960) % 20 == 0, 0.001 * np.arange(960), 0.0)
    assert trend(np.full(960, 0.01), 0.001 + redraw).phase == "other"


def test_validation_that_grows_is_no_training_step():
    gap = np.arange(400) % 10 == 0
    assert trend(np.full(400, 0.01), np.where(gap, 0.01 * np.arange(400), 0.005), gap=gap) is None


def test_waiting_for_a_core_is_not_the_programs_growth():
    waited = 0.00005 * np.arange(400)
    edges = 100 + np.concatenate([[0], (0.011 + waited).cumsum()])
    points = [
        ResourcePoint(t=float(t), pid=PID, cpu_s=0.0, run_delay_s=float(delay), rss_bytes=1)
        for t, delay in zip(edges, np.concatenate([[0], waited.cumsum()]))
    ]
    assert trend(np.full(400, 0.01), 0.001 + waited) is not None
    assert trend(np.full(400, 0.01), 0.001 + waited, points=points) is None


def test_stacks_are_told_apart_by_the_half_of_the_steps_that_they_are_in():
    def stacks(function):
        return [StackSample(PID, "MainThread", (Frame(function, "a.py", 3),), 5)]

    other = 0.01 + 0.0001 * np.arange(400)
    edges = loop(np.full(400, 0.01), other).starts
    windows = [StackWindow(float(edges[50]), stacks("before")), StackWindow(float(edges[350]), stacks("after"))]
    found = trend(np.full(400, 0.01), other, windows=windows)
    assert (found.early, found.late) == (stacks("before"), stacks("after"))
    assert found.early_s == pytest.approx(0.025, rel=0.02) and found.late_s == pytest.approx(0.055, rel=0.02)


def test_too_few_steps_say_nothing():
    assert trend(np.full(40, 0.01), 0.001 * np.arange(40)) is None


def test_growth_is_seen_in_the_quickest_steps_beside_a_neighbour_that_takes_turns():
    """Half of the steps are held up for so long that means and medians say nothing; the scheduler counts a quarter of it."""
    other = 0.001 * np.linspace(1, 8, 400) * noise(2, 400, 0.02)
    waited = np.where(np.arange(400) % 4 < 2, 0.02 * noise(3, 400, 1.0), 0.0)
    edges = 100 + np.concatenate([[0], (other + waited).cumsum()])
    points = [
        ResourcePoint(t=float(t), pid=PID, cpu_s=0.0, run_delay_s=float(delay), rss_bytes=1)
        for t, delay in zip(edges, 0.25 * np.concatenate([[0], waited.cumsum()]))
    ]
    found = trend(np.full(400, 0.0001), other + waited, points=points)
    assert found is not None and found.phase == "other"
    assert found.end_s / found.begin_s == pytest.approx(8, rel=0.3)
