"""The cores that a program may run on: theirs are the busy seconds, and a quota leaves the rest to others."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import psutil
import pytest

from unstall.benchmark import cores
from unstall.benchmark.cores import Cores
from unstall.benchmark.resources import other_cores
from unstall.records.observations import MachinePoint


def busy_s(times):
    return sum(times) - times.idle - times.iowait - times.guest - times.guest_nice


def test_all_cores_of_the_machine_are_as_busy_as_psutil_says(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(os.cpu_count())))
    assert Cores().busy_s() == pytest.approx(busy_s(psutil.cpu_times()), rel=0.2, abs=60.0)


def test_the_cores_that_a_process_may_not_use_are_left_out():
    core = max(os.sched_getaffinity(0))
    bound = f"import os; os.sched_setaffinity(0, {{{core}}}); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", bound], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        its = Cores(process.pid)
        process.communicate(b"\n")
    assert its.busy_s() == pytest.approx(busy_s(psutil.cpu_times(percpu=True)[core]), rel=0.2, abs=60.0)


def test_of_a_process_that_has_ended_they_are_this_ones():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert Cores(process.pid).busy_s() == pytest.approx(Cores().busy_s(), rel=0.1, abs=10.0)


def test_cores_that_unstall_itself_may_not_use_are_no_quota(monkeypatch):
    """It may be bound to one core, and be attached to a program that has them all."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)) if pid else {0})
    monkeypatch.setattr(cores, "cpu_quota", lambda: math.inf)
    assert Cores(1).beyond_quota == 0.0


@pytest.mark.parametrize(("quota", "left"), [(math.inf, 0.0), (64.0, 0.0), (2.0, 62.0)])
def test_what_a_quota_leaves_to_others_is_no_loss(monkeypatch, quota, left):
    """Others keep 50 of 64 cores busy: to a container that may use two of them that is nothing."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)))
    monkeypatch.setattr(cores, "cpu_quota", lambda: quota)
    assert Cores().beyond_quota == left
    machine = [MachinePoint(float(t), 50.0 * t, beyond_quota=left) for t in range(3)]
    assert other_cores(machine, [], 0.0, 2.0) == max(0.0, 50.0 - left)
