"""The resource monitor on a real process tree, and the arithmetic over its points."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.benchmark.process_readers import ProcessReader
from unstall.benchmark.resources import (
    ResourceMonitor,
    cpu_between,
    growth,
    other_cores,
    thin,
    unseen_cpu_between,
)
from unstall.records.observations import MachinePoint, ResourcePoint

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

TREE = """
import subprocess, sys, threading, time
child = "import os\\nblock = b'x' * 30_000_000\\nprint('ready', flush=True)\\nos.read(0, 1)"
def start():
    subprocess.Popen([sys.executable, "-c", child])
    time.sleep(1000)
threading.Thread(target=start, daemon=True).start()
while True:
    pass
"""


def looked(monitor: ResourceMonitor, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < deadline, "it never came about"
        monitor.poll(time.monotonic())
        time.sleep(0.02)


def test_a_process_tree_is_followed_into_children_of_threads():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", TREE], **pipes) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            monitor = ResourceMonitor(process.pid, period_s=0.05)
            looked(monitor, lambda: len({point.pid for point in monitor.points}) == 2)
            (child,) = {point.pid for point in monitor.points} - {process.pid}
            first = monitor.machine[0].t
            looked(monitor, lambda: monitor.machine[-1].t > first + 0.5)
            last = monitor.machine[-1].t
            assert cpu_between(monitor.points, {process.pid}, first, last) > 0.0
            assert cpu_between(monitor.points, {child}, first, last) < 0.1
            assert monitor.points[-1].rss_bytes > 5_000_000
            assert other_cores(monitor.machine, monitor.points, first, last) >= 0.0
            monitor.ignore.add(child)
            monitor.points.clear()
            looked(monitor, lambda: len({point.t for point in monitor.points}) > 4)
            assert monitor.points[-1].pid == process.pid
        finally:
            process.kill()


def test_looks_keep_their_period():
    monitor = ResourceMonitor(os.getpid(), period_s=10.0)
    for now in (100.0, 101.0, 109.9, 110.0, 119.0, 121.0):
        monitor.poll(now)
    assert [point.t for point in monitor.machine] == [100.0, 110.0, 121.0]


def test_a_long_run_is_looked_at_less_often():
    monitor = ResourceMonitor(os.getpid())
    for tenth in range(400):
        monitor.poll(100 + tenth / 10)
    times = [point.t for point in monitor.machine]
    early = [later - t for t, later in pairwise(times) if later < 115]
    late = [later - t for t, later in pairwise(times) if t > 125]
    assert max(early) < 0.35 and min(late) > 0.45


def test_a_process_that_is_gone_gives_no_points():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    monitor = ResourceMonitor(process.pid)
    monitor.poll(0.0)
    assert monitor.points == []
    assert len(monitor.machine) == 1


def test_memory_of_the_points_is_bounded():
    monitor = ResourceMonitor(os.getpid(), most_points=50)
    for now in range(1000):
        monitor.poll(float(now))
    assert len(monitor.points) <= 50
    assert len(monitor.machine) <= 50
    times = [point.t for point in monitor.machine]
    assert times == sorted(times)
    assert times[0] == 0.0 and times[-1] == 999.0


def test_gpus_are_told_of_plainly():
    monitor = ResourceMonitor(os.getpid())
    monitor.poll(0.0)
    assert "GPU" in monitor.gpus.status
    assert len(monitor.machine[0].gpu_utilization) == len(monitor.gpus.devices)
    assert len(monitor.machine[0].gpu_memory_bytes) == len(monitor.gpus.devices)


@on_linux
def test_an_array_is_mapped_when_it_is_made_and_resident_when_it_is_filled():
    def look():
        point = ProcessReader().look(os.getpid(), 0.0)
        return point.mapped_bytes, point.rss_bytes

    size, before = 1 << 28, look()
    array = np.empty(size, np.uint8)
    made = look()
    array[:] = 1
    filled = look()
    assert made[0] - before[0] >= size and made[1] - before[1] < size / 4
    assert abs(filled[0] - made[0]) < size / 4 and filled[1] - made[1] > size / 2


@on_linux
def test_a_look_agrees_with_psutil(tmp_path):
    look, theirs = ProcessReader().look(os.getpid(), 3.0), psutil.Process()
    assert look is not None
    times = theirs.cpu_times()
    assert look.cpu_s == pytest.approx(times.user + times.system, abs=0.5)
    assert look.rss_bytes == pytest.approx(theirs.memory_info().rss, rel=0.2)
    assert look.read_bytes <= theirs.io_counters().read_bytes
    assert look.kernel_s == pytest.approx(times.system, abs=0.5) and look.kernel_s <= look.cpu_s
    assert look.t == 3.0
    assert look.run_delay_s >= 0.0


@on_linux
def test_pages_that_are_taken_are_counted():
    reader = ProcessReader()
    before = reader.look(os.getpid(), 0.0)
    taken = bytearray(64 << 20)  # zeroed by the kernel, and touched nowhere but at its pages' first bytes
    taken[::4096] = b"x" * (64 << 8)
    after = reader.look(os.getpid(), 1.0)
    assert after.page_faults - before.page_faults > 20  # 16,384, or 32 where the kernel gives huge ones


def test_a_process_that_has_ended_has_no_state_and_no_children():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert ProcessReader().look(process.pid, 0.0) is None
    assert ProcessReader().children(process.pid, every_thread=True) == []


def point(t: float, pid: int = 1, cpu: float = 0.0, delay: float = 0.0, rss: int = 0):
    return ResourcePoint(t, pid, cpu, delay, rss)


POINTS = [
    point(0.0, 1, cpu=10.0, delay=1.0, rss=5),
    point(0.0, 2, cpu=0.0, rss=1),
    point(2.0, 1, cpu=12.0, delay=2.0, rss=6),
    point(2.0, 2, cpu=1.0, rss=2),
    point(4.0, 1, cpu=12.0, delay=2.0, rss=7),
]


def test_cpu_is_interpolated_between_looks_and_flat_outside():
    assert cpu_between(POINTS, {1}, 0.5, 1.5) == pytest.approx(1.0)
    assert cpu_between(POINTS, {1, 2}, 1.0, 3.0) == pytest.approx(1.0 + 0.5)
    assert cpu_between(POINTS, {2}, 1.0, 99.0) == pytest.approx(0.5)
    assert cpu_between(POINTS, {1}, -9.0, 99.0) == pytest.approx(2.0)
    assert cpu_between(POINTS, {3}, 0.0, 4.0) == 0.0
    assert cpu_between([], {1}, 0.0, 4.0) == 0.0


def test_what_a_process_took_before_it_was_first_seen_it_took_since_the_look_before():
    later = [*POINTS, point(4.0, 7, cpu=1.5), point(6.0, 7, cpu=2.0)]
    assert cpu_between(later, {7}, 0.0, 9.0) == pytest.approx(2.0)
    assert cpu_between(later, {7}, 3.0, 4.0) == pytest.approx(0.75)
    assert cpu_between(later, {1}, 0.0, 9.0) == pytest.approx(2.0), "what it had at the first look is of before"


def test_run_delay():
    assert growth(POINTS, {1}, 1.0, 4.0, "run_delay_s") == pytest.approx(0.5)


def test_other_cores():
    machine = [MachinePoint(0.0, 100.0), MachinePoint(4.0, 107.0)]
    assert other_cores(machine, POINTS, 0.0, 4.0) == pytest.approx((7.0 - 3.0) / 4.0)
    assert other_cores(machine[:1], POINTS, 0.0, 4.0) == 0.0
    assert other_cores([], [], 0.0, 4.0) == 0.0
    assert other_cores(machine, POINTS, 4.0, 4.0) == 0.0


def test_what_workers_take_after_the_last_look_is_their_parents_to_tell(monkeypatch):
    """A worker that ends at once, one that was seen, and a command that no look saw; then a daemon without a parent."""

    def looked_at(t, pid, cpu, children=0.0):
        return ResourcePoint(t, pid, cpu, 0.0, 0, children_cpu_s=children)

    looks = [
        [looked_at(0.0, 1, 1.0), looked_at(0.0, 2, 0.0)],
        [looked_at(1.0, 1, 1.5), looked_at(1.0, 2, 0.8)],
        [looked_at(2.0, 1, 2.0, children=1.3 + 0.4), looked_at(2.0, 3, 0.9)],
        [looked_at(3.0, 1, 2.0, children=1.3 + 0.4)],
    ]
    monitor = ResourceMonitor(1, period_s=0.5)
    for t, seen in enumerate(looks):
        by_pid = {each.pid: each for each in seen}
        monkeypatch.setattr(monitor, "_descendants", lambda by_pid=by_pid, **_: list(by_pid))
        monkeypatch.setattr(monitor._reader, "look", lambda pid, _, by_pid=by_pid: by_pid.get(pid))
        monitor.poll(float(t))
    machine = [MachinePoint(look.t, 1.2 * look.t, unseen_cpu_s=look.unseen_cpu_s) for look in monitor.machine]
    assert unseen_cpu_between(machine, 0.0, 3.0) == pytest.approx(0.9)
    assert unseen_cpu_between(machine, 0.0, 1.0) == 0.0
    assert unseen_cpu_between(machine, 1.0, 1.5) == pytest.approx(0.45)
    assert unseen_cpu_between(machine, 2.0, 3.0) == 0.0, "the daemon's end takes nothing back"
    assert unseen_cpu_between([], 0.0, 3.0) == 0.0
    assert other_cores(machine, monitor.points, 0.0, 3.0) == pytest.approx(0.0)


def test_a_process_is_told_what_those_took_that_it_waited_for():
    work = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    subprocess.run([sys.executable, "-c", work], check=True)
    assert ProcessReader().look(os.getpid(), 0.0).children_cpu_s >= 0.2


looks = st.lists(st.tuples(st.integers(1, 3), st.floats(0.0, 10.0)), min_size=1, max_size=60)


@given(looks, st.floats(-5.0, 70.0), st.floats(0.0, 70.0), st.floats(0.0, 70.0))
def test_stretches_of_time_add_up(steps, start, first, second):
    totals = {1: 0.0, 2: 0.0, 3: 0.0}
    points = []
    for t, (pid, used) in enumerate(steps):
        totals[pid] += used
        points.append(point(float(t), pid, cpu=totals[pid]))
    middle, end = start + first, start + first + second
    whole = cpu_between(points, {1, 2, 3}, start, end)
    parts = cpu_between(points, {1, 2, 3}, start, middle) + cpu_between(points, {1, 2, 3}, middle, end)
    assert whole == pytest.approx(parts, abs=1e-6)
    assert 0.0 <= whole <= sum(totals.values()) + 1e-6


@given(looks)
def test_thinning_keeps_the_ends_of_every_process(steps):
    points = [point(float(t // 2), pid) for t, (pid, _) in enumerate(steps)]
    kept = thin(points)
    assert len(kept) <= len(points)
    if len(kept) < len(points) and len(points) > 40:
        assert kept[0] == points[0]
        assert kept[-1] == points[-1] or kept == points[::2]
