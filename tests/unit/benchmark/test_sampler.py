"""The sampler against a real program, and against stand-ins for py-spy that go wrong."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.benchmark import ptrace
from unstall.benchmark.sampler import Sampler, half_width, rate
from unstall.benchmark.stacks import program_leaf
from unstall.records.observations import Frame, StackSample, StackWindow

PROGRAM = """
import threading, time

def wait_for_ever():
    time.sleep(1000)

def busy():
    while True: pass

threading.Thread(target=wait_for_ever, daemon=True, name="waiter").start()
print("ready", flush=True)
busy()
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is busy in one function, with a thread that waits in another."""
    script = tmp_path / "a busy (1); program é.py"
    script.write_text(PROGRAM)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def poll_until(watcher: Sampler, condition: Callable[[], object], limit_s: float = 30.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "nothing came of it"
        watcher.poll(time.monotonic())
        time.sleep(0.02)


def can_attach(pid: int) -> bool:
    return ptrace.obstacle(pid) is None


def test_it_sees_where_a_program_is_busy(program: subprocess.Popen[bytes], tmp_path: Path):
    if not can_attach(program.pid):
        pytest.skip("py-spy may not attach here")
    watcher = Sampler(program.pid, tmp_path, window_s=0.4, pause_s=0.0)
    poll_until(watcher, lambda: watcher.done)
    watcher.close()
    assert watcher.failure is None
    assert len(watcher.windows) >= 3
    assert all(start < end for start, end in watcher.windows)
    main = [sample for sample in watcher.samples if sample.main_thread]
    assert watcher.main_samples == sum(sample.count for sample in main)
    assert {sample.pid for sample in watcher.samples} == {program.pid}
    assert {program_leaf(sample.frames).function for sample in main} == {"busy"}
    assert "waiter" in {sample.thread for sample in watcher.samples}
    assert list(tmp_path.glob("stacks-*")) == []


def test_windows_begin_only_while_enabled_and_after_the_pause(program: subprocess.Popen[bytes], tmp_path: Path):
    watcher = Sampler(program.pid, tmp_path, window_s=0.1, pause_s=1000.0)
    watcher.enabled = False
    watcher.poll(time.monotonic())
    assert watcher.process_pid is None
    watcher.enabled = True
    poll_until(watcher, lambda: watcher.windows)
    watcher.poll(watcher.windows[0][1] + 999.0)
    assert watcher.process_pid is None
    watcher.poll(watcher.windows[0][1] + 1001.0)
    assert watcher.process_pid is not None
    watcher.close()


def test_a_run_that_is_known_is_looked_at_again_when_it_is_twice_as_old(
    program: subprocess.Popen[bytes], tmp_path: Path
):
    watcher = Sampler(program.pid, tmp_path, window_s=0.1, pause_s=0.0)
    watcher.windows, watcher.done = [(100.0, 101.0), (109.0, 110.0)], True
    watcher.poll(119.0)
    assert watcher.process_pid is None
    watcher.poll(120.5)
    assert watcher.process_pid is not None
    watcher.close()
    assert watcher.samples == []


def test_a_pause_of_the_loop_is_looked_at_apart_though_all_else_is_known(
    program: subprocess.Popen[bytes], tmp_path: Path
):
    watcher = Sampler(program.pid, tmp_path, window_s=0.1, pause_s=0.0)
    now = time.monotonic()
    watcher.windows, watcher.done = [(now - 2.0, now)], True
    watcher.poll(now + 0.1)
    assert watcher.process_pid is None
    watcher.in_pause = True
    watcher.poll(now + 0.2)
    poll_until(watcher, lambda: watcher.process_pid is None)
    assert watcher.samples == watcher.stacks == [] and len(watcher.windows) == 1
    if can_attach(program.pid):
        assert len(watcher.pauses) == 1
    watcher.pauses = watcher.pauses[:1] * 12 or [StackWindow(now, [])] * 12
    watcher.poll(now + 1.0)
    assert watcher.process_pid is None  # it was looked at often enough
    watcher.in_pause = False
    watcher.poll(now + 2.5)
    assert watcher.process_pid is not None  # twice as old as at the last look that was due
    watcher.close()
    assert len(watcher.pauses) == 12 and len(watcher.windows) == 2


def test_close_leaves_nothing_behind_and_keeps_what_was_seen(program: subprocess.Popen[bytes], tmp_path: Path):
    if not can_attach(program.pid):
        pytest.skip("py-spy may not attach here")
    watcher = Sampler(program.pid, tmp_path, window_s=100.0)
    watcher.poll(time.monotonic())
    pid = watcher.process_pid
    assert pid is not None
    time.sleep(1.0)
    watcher.close()
    watcher.close()
    assert not psutil.pid_exists(pid)
    assert watcher.process_pid is None
    assert list(tmp_path.glob("stacks-*")) == []
    assert watcher.main_samples > 0


def test_a_program_that_ends_is_no_failure(program: subprocess.Popen[bytes], tmp_path: Path):
    watcher = Sampler(program.pid, tmp_path, window_s=100.0, pause_s=0.0)
    watcher.poll(time.monotonic())
    time.sleep(0.3)
    program.kill()
    program.wait()
    for _ in range(3):
        poll_until(watcher, lambda: watcher.process_pid is None)
        watcher.poll(time.monotonic())
    watcher.close()
    assert watcher.failure is None


def fake_py_spy(folder: Path, body: str) -> Callable[[], str]:
    """What finds a stand-in that runs this."""
    stand_in = folder / "py_spy.py"
    stand_in.write_text(f"import os, signal, sys, time\n{body}\n")
    script = folder / "py-spy"
    # Not in the first line: the path of this Python may have a space in it.
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(stand_in))} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return lambda: str(script)


def test_it_counts_the_stacks_that_could_not_be_read(program: subprocess.Popen[bytes], tmp_path: Path):
    stack = f'process {program.pid}:"python";thread ({program.pid}): MainThread;f (/home/me/train.py:3) 20'
    find = fake_py_spy(
        tmp_path,
        f"open(sys.argv[sys.argv.index('--output') + 1], 'w').write({stack!r} + chr(10))\n"
        "print('py-spy> Wrote raw flamegraph data to', sys.argv[-1] + '. Samples: 20 Errors: 7')",
    )
    watcher = Sampler(program.pid, tmp_path, window_s=10.0, pause_s=0.0, find=find)
    poll_until(watcher, lambda: len(watcher.windows) == 2)
    watcher.close()
    assert {window.lost for window in watcher.stacks} == {7}
    assert watcher.lost == 7 * len(watcher.stacks)
    watcher.forget()
    assert watcher.lost == 0


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        ("Error: No python processes found in process 1", "found no Python process"),
        (
            "py-spy> hello\\nError: it is broken\\n\\nStack backtrace:",
            "py-spy failed: it is broken",
        ),
        ("", "py-spy failed: no reason given"),
    ],
)
def test_it_gives_up_after_a_few_attempts_and_says_why(message: str, failure: str, tmp_path: Path):
    find = fake_py_spy(tmp_path, f"sys.stderr.write('''{message}'''); sys.exit(1)")
    watcher = Sampler(os.getpid(), tmp_path, pause_s=0.0, find=find, obstacle=lambda pid: None)
    poll_until(watcher, lambda: watcher.failure)
    assert failure in watcher.failure
    assert "\n" not in watcher.failure
    assert not watcher.done
    attempts = len(watcher.windows)
    assert attempts > 1
    watcher.poll(time.monotonic())
    assert watcher.process_pid is None


def test_it_names_what_forbids_it(tmp_path: Path):
    find = fake_py_spy(tmp_path, "sys.exit(1)")
    obstacle = "only root may trace here"
    watcher = Sampler(os.getpid(), tmp_path, pause_s=0.0, find=find, obstacle=lambda pid: obstacle)
    poll_until(watcher, lambda: watcher.failure)
    assert watcher.failure == "py-spy may not read the program: only root may trace here"


def test_a_py_spy_that_does_not_stop_is_killed(tmp_path: Path):
    body = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nopen(sys.argv[-1], 'w').write('half a li')\ntime.sleep(1000)"
    watcher = Sampler(os.getpid(), tmp_path, stop_s=0.2, find=fake_py_spy(tmp_path, body))
    watcher.poll(time.monotonic())
    pid = watcher.process_pid
    poll_until(watcher, lambda: list(tmp_path.glob("stacks-*")))
    watcher.close()
    assert not psutil.pid_exists(pid)
    assert list(tmp_path.glob("stacks-*")) == []


def test_a_window_that_does_not_end_is_given_up(tmp_path: Path):
    body = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nopen(sys.argv[-1], 'w').write('half a li')\ntime.sleep(1000)"
    watcher = Sampler(os.getpid(), tmp_path, find=fake_py_spy(tmp_path, body))
    now = time.monotonic()
    watcher.poll(now)
    poll_until(watcher, lambda: list(tmp_path.glob("stacks-*")))
    watcher.poll(now + 2.0)
    assert watcher.process_pid is not None and watcher.failure is None
    watcher.poll(now + 30.0)
    assert watcher.process_pid is None and watcher.windows == [(now, now + 30.0)]
    assert watcher.failure == "py-spy did not end for 30 s: the machine is too busy"
    assert watcher.abandoned is not None and watcher.abandoned.wait(30.0) < 0
    assert list(tmp_path.glob("stacks-*")) == []
    watcher.close()


def test_py_spy_gets_no_interrupt_of_the_terminals(tmp_path: Path):
    watcher = Sampler(os.getpid(), tmp_path, window_s=100.0, find=fake_py_spy(tmp_path, "time.sleep(1000)"))
    watcher.poll(time.monotonic())
    assert watcher.process_pid is not None
    assert os.getpgid(watcher.process_pid) != os.getpgid(0)
    watcher.close()


def test_without_py_spy_it_says_what_to_install(tmp_path: Path):
    watcher = Sampler(os.getpid(), tmp_path, find=lambda: None)
    watcher.poll(time.monotonic())
    assert watcher.process_pid is None
    assert watcher.failure == "py-spy is not installed: pip install py-spy"


def test_a_py_spy_that_cannot_be_started(tmp_path: Path):
    watcher = Sampler(os.getpid(), tmp_path, find=lambda: str(tmp_path / "gone"))
    watcher.poll(time.monotonic())
    assert watcher.failure is not None and "cannot be started" in watcher.failure


def seen(count: int, line: int, pid: int = 1, file: str = "/home/me/a.py") -> StackSample:
    return StackSample(pid, "MainThread", (Frame("f", file, line),), count)


@given(st.integers(0, 500), st.floats(0.5, 256))
def test_all_processes_together_are_not_looked_at_more_often_than_the_cores_can_bear(processes: int, cores: float):
    found = rate(processes, cores)
    assert 20 <= found <= 100
    assert rate(processes + 1, cores) <= found <= rate(processes, 2 * cores)
    assert rate(1, 2) == 100 and rate(9, 2) < 30 and rate(9, 64) == 100


def test_the_half_width_shrinks_with_samples_and_counts_every_group():
    even = [seen(500, 1), seen(500, 2)]
    assert half_width([], 1) == 1.0
    assert half_width(even, 1) == pytest.approx(1.96 * (0.25 / 1004) ** 0.5)
    assert half_width([seen(1000, 1)], 1) < half_width(even, 1) < half_width([seen(20, 1)], 1)
    # A worker that was hardly seen is what is known worst.
    assert half_width([*even, seen(5, 9, pid=2)], 1) == half_width([seen(5, 9, pid=2)], 1)
    # A process that never runs the user's code does not matter.
    assert half_width([*even, seen(5, 9, pid=2, file="<string>")], 1) == half_width(even, 1)


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 5)), max_size=8))
def test_the_half_width_is_a_share(counts: list[tuple[int, int]]):
    assert 0.0 < half_width([seen(count, line) for count, line in counts], 1) <= 1.0


def without_capability(proc: Path, scope: int | None = None) -> str:
    """A ``/proc`` in which this process may not trace others by itself, and is process 1."""
    (proc / "self").mkdir()
    (proc / "self" / "status").write_text("CapEff:\t0000000000000000\n")
    (proc / "1").mkdir()
    if scope is not None:
        (proc / "sys/kernel/yama").mkdir(parents=True)
        (proc / "sys/kernel/yama/ptrace_scope").write_text(f"{scope}\n")
    return str(proc)


def test_nothing_is_in_the_way_of_a_process_that_is_gone(tmp_path: Path):
    assert ptrace.obstacle(2, proc=without_capability(tmp_path)) is None


@pytest.mark.parametrize("scope", [None, 0, 1, 2, 3])
def test_obstacles_by_scope(tmp_path: Path, scope: int | None):
    found = ptrace.obstacle(1, proc=without_capability(tmp_path, scope))
    assert f"ptrace_scope={scope}" in (found or "") if scope else found is None


def test_another_users_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: -1)
    assert "another user" in (ptrace.obstacle(1, proc=without_capability(tmp_path)) or "")
