"""Where the device's time goes: the traps that real traces set."""

from __future__ import annotations

import kineto_files as files
import pytest
from gpu_programs import Program, busy_host, compute_bound, launch_bound, reads_back, reduces, waits_for_data

from unstall.diagnose.trace_comparison import USES
from unstall.trace.breakdown import Breakdown
from unstall.trace.metrics import TimelineMetrics


def _shares(program: Program) -> dict[str, float]:
    return TimelineMetrics(program.timeline()).shares


@pytest.mark.parametrize(
    "program",
    [launch_bound(), compute_bound(), reads_back(), waits_for_data(), busy_host(), reduces(), reduces(overlapped=True)],
)
def test_the_uses_are_disjoint_and_sum_to_one(program):
    metrics = TimelineMetrics(program.timeline())
    assert sum(metrics.shares[name] for name in USES) == pytest.approx(1)
    parts: Breakdown = metrics.breakdown
    for number in range(program.steps):
        assert sum(getattr(parts, name)[number] for name in USES) == pytest.approx(1)


def test_a_leading_gap_counts():
    """From the first to the last device event the device is never idle; in the step's own window it is half idle."""
    program = Program()
    with program.step():
        program.busy(5000.0, "data.py(3): decode")
        program.launch(5000.0)
    program.sync()
    shares = _shares(program)
    assert shares["busy"] == pytest.approx(0.5, abs=0.01)
    assert shares["idle_host"] == pytest.approx(0.5, abs=0.01)


def test_waiting_for_a_busy_device_is_no_idle_time():
    """A trailing synchronise takes most of the step, and costs nothing."""
    shares = _shares(compute_bound())
    assert shares["sync"] > 0.8
    assert shares["idle_sync"] < 0.01
    assert shares["busy"] > 0.95


def test_waiting_counts_where_the_device_is_idle():
    program = Program()
    with program.step():
        for _ in range(10):
            program.launch(50.0)
            program.sync()
            program.events[-1]["dur"] += 100  # the call returns late
            program.now += 100
    shares = _shares(program)
    assert shares["idle_sync"] == pytest.approx(1000 / program.now, rel=0.1)


def test_long_launch_calls_with_a_full_queue_are_back_pressure():
    program = Program()
    with program.step():
        for _ in range(1500):
            program.launch(50.0, before=2.0)
        for _ in range(20):
            program.launch(50.0, before=2.0, call=400.0)
    program.sync()
    shares = _shares(program)
    assert shares["back_pressure"] == pytest.approx(20 * 400 / program.step_us(), rel=0.05)
    assert shares["idle_submitting"] < 0.01


def test_long_launch_calls_with_an_empty_queue_are_not():
    program = Program()
    with program.step():
        for number in range(100):
            program.launch(5.0, call=200.0 if number % 10 == 5 else 5.0)
    assert _shares(program)["back_pressure"] == 0


def test_first_launches_of_a_millisecond_are_a_cold_start():
    program = Program()
    with program.step():
        for number in range(40):
            program.launch(20.0, f"kernel_{number % 8}", call=1000.0 if number < 8 else 5.0)
    metrics = TimelineMetrics(program.timeline())
    assert len(metrics.queue.cold_rows) == 8
    assert metrics.shares["idle_cold"] > 0.7
    assert metrics.shares["idle_host"] < 0.05


def test_the_share_of_prompt_starts_tells_a_late_host_the_share_of_launch_calls_does_not():
    late, ahead = (TimelineMetrics(program.timeline()) for program in (launch_bound(), compute_bound()))
    assert late.queue.prompt_share > 0.95
    assert ahead.queue.prompt_share < 0.2
    calls = [metrics.shares["launch"] * metrics.windows.step_s for metrics in (late, ahead)]
    assert calls[0] == pytest.approx(calls[1])


def test_a_graph_has_one_launch_for_many_kernels():
    program = Program()
    for _ in range(3):
        with program.step():
            program.graph([50.0] * 30)
        program.sync()
    metrics = TimelineMetrics(program.timeline())
    assert metrics.graph_share == 1
    assert metrics.kernels_per_step == 30
    assert (metrics.timeline.launch >= 0).all()
    assert metrics.shares["busy"] > 0.9


def test_two_devices_are_averaged():
    program = Program()
    with program.step():
        program.launch(1000.0, device=0)
        program.launch(500.0, device=1)
    program.sync()
    metrics = TimelineMetrics(program.timeline())
    assert len(metrics.activity.devices) == 2
    assert metrics.shares["compute"] == pytest.approx(1500 / 2 / program.step_us(), rel=0.02)


def test_communication_is_exposed_or_hidden():
    exposed, hidden = _shares(reduces()), _shares(reduces(overlapped=True))
    assert exposed["communication"] == pytest.approx(exposed["communication_all"], rel=0.01)
    assert hidden["communication"] < 0.2 * hidden["communication_all"]


def test_the_loader_has_its_idle_time_before_all_others():
    program = waits_for_data(wait=3000.0)
    assert _shares(program)["idle_loader"] == pytest.approx(3000 / program.step_us(), rel=0.05)


def test_overlapping_steps_and_dirty_events():
    """Steps that overlap, an event without end and one outside every step must not break the sums."""
    program = launch_bound()
    program.events.append(files.step(9, program.now - 50.0, 500.0))
    program.events.append(files.host("aten::lost", -500.0, 10.0))
    metrics = TimelineMetrics(program.timeline())
    assert sum(metrics.shares[name] for name in USES) == pytest.approx(1)


def test_queue_depth():
    metrics = TimelineMetrics(compute_bound(steps=1).timeline())
    depth = metrics.queue.depth_over(metrics.windows.whole)[0]
    assert len(depth) == 20
    assert depth.max() > 20
    assert metrics.queue.depth_at(metrics.windows.end_ns).tolist() == [0]
