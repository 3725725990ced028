"""Figures of a trace beside the breakdown: kernels, copies, waits, queue, steps, the loader's share."""

from __future__ import annotations

import pytest
from gpu_programs import Program, launch_bound, reads_back, waits_for_data

from unstall.diagnose.trace_report import report
from unstall.trace.metrics import TimelineMetrics
from unstall.trace.ranks import Ranks
from unstall.trace.timeline import CopyKind, HostMemory


def test_the_distribution_of_kernel_durations():
    program = Program()
    with program.step():
        for duration in [5.0] * 8 + [100.0, 195.0]:
            program.launch(duration)
    program.sync()
    metrics = TimelineMetrics(program.timeline())
    sizes = metrics.kernels.sizes
    assert (sizes.count, sizes.small) == (10, 0.8)
    assert sizes.mean == pytest.approx(33_500)
    assert sizes.p50 == 5_000
    assert 100_000 <= sizes.p90 <= 195_000
    assert metrics.kernels_per_step == 10


def test_copies_by_direction_memory_and_size():
    program = Program()
    for _ in range(2):
        with program.step():
            program.copy(500.0, "HtoD", "Pageable", size=6_000_000)
            program.copy(500.0, "HtoD", "Pinned", size=6_000_000)
            for _ in range(3):
                program.copy(30.0, "DtoH", "Pageable", size=4)
        program.sync()
    groups = {(one.direction, one.memory): one for one in TimelineMetrics(program.timeline()).copies}
    pageable, pinned = groups[CopyKind.H2D, HostMemory.PAGEABLE], groups[CopyKind.H2D, HostMemory.PINNED]
    assert (pageable.count, pageable.blocking, pageable.tiny, pageable.bytes) == (2, 2, 0, 12_000_000)
    assert (pinned.count, pinned.blocking) == (2, 0)
    read_back = groups[CopyKind.D2H, HostMemory.PAGEABLE]
    assert (read_back.count, read_back.tiny, read_back.blocking) == (6, 6, 6)


def test_a_call_that_stages_all_but_the_last_of_a_copy_is_held_up_by_it():
    program = Program()
    for _ in range(3):
        with program.step():
            program.copy(3000.0, "HtoD", size=28_000_000, early=18.0)
            for _ in range(20):
                program.launch(50.0)
        program.sync()
    metrics = TimelineMetrics(program.timeline())
    assert [group.blocking for group in metrics.copies] == [3]
    assert metrics.replay.faithful
    assert metrics.replay.gain("copies=0") > 3
    assert metrics.replay.gain("copies=overlapped") == pytest.approx(program.step_us() / 3000, rel=0.02)


def test_waits_are_told_with_who_made_them_and_what_they_cost():
    metrics = TimelineMetrics(reads_back(steps=4).timeline())
    worst = metrics.waits[0]
    assert worst.operator in ("aten::item", "aten::_local_scalar_dense")
    assert (worst.call, worst.count) == ("cudaMemcpyAsync", 96)
    assert 0 < worst.idle_ns < worst.blocked_ns


def test_steps_that_vary():
    even, uneven = launch_bound(steps=6), Program()
    for number in range(6):
        with uneven.step():
            uneven.busy(1000.0 * (number % 3))
            uneven.launch(50.0)
        uneven.sync()
    assert TimelineMetrics(even.timeline()).step_variation < 0.01
    made = report(Ranks.of([uneven.timeline()]), [])
    assert made.trace.step_variation > 0.5
    assert any("steps vary by" in note for note in made.run.notes)


def test_the_loaders_share_and_the_queue_of_each_step():
    made = report(Ranks.of([waits_for_data(steps=3, wait=3000.0).timeline()]), [])
    assert made.trace.device["loader"] == pytest.approx(made.trace.device["idle_loader"], abs=0.05)
    assert len(made.trace.steps) == 3
    for one in made.trace.steps:
        assert one.shares["loader"] > 0.5
        assert len(one.queue_depth) == 20
        assert max(one.queue_depth) >= 1
    assert set(made.trace.critical_path) >= {"loader", "compute"}
    assert sum(made.trace.critical_path.values()) == pytest.approx(1)
