"""Signals that unstall alone received, told from those that the program's group received."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

# In a session of its own, so that a signal to the group reaches nobody else. It sends itself what a person would send.
PROGRAM = """
import os, signal, sys
from unstall.benchmark import signals

number = signal.{name}
before = signal.getsignal(number)
with signals.SignalRelay(grace_s={grace}) as watch:
    {send}
    lone, waits = [], 0
    while waits < 3:
        lone += watch.wait(0.2)
        waits += 1
print("lone", [int(n) for n in lone])
print("restored", signal.getsignal(number) == before)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child left")
"""


def run(name, send, *, grace):
    program = PROGRAM.format(name=name, send=send, grace=grace)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGQUIT", "SIGSEGV", "SIGRTMIN"])
def test_a_signal_to_unstall_alone_is_to_be_passed_on(name):
    number = int(getattr(signal, name))
    out = run(name, "os.kill(os.getpid(), number)", grace=0.05)
    assert out == [f"lone [{number}]", "restored True", "no child left"]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGQUIT", "SIGSEGV", "SIGRTMIN"])
def test_a_signal_to_the_whole_group_is_not(name):
    out = run(name, "os.killpg(os.getpgrp(), number)", grace=20)  # the canary may be slow to be scheduled
    assert out == ["lone []", "restored True", "no child left"]


@pytest.mark.parametrize(
    ("name", "next_name"), [("SIGCONT", "SIGTSTP"), ("SIGTSTP", "SIGCONT"), ("SIGTTIN", "SIGCONT")]
)
def test_of_stop_and_continue_to_the_group_the_canary_may_have_lost_the_first(name, next_name):
    group = f"os.killpg(os.getpgrp(), number); os.killpg(os.getpgrp(), signal.{next_name})"
    assert run(name, group, grace=20)[0] == "lone []"


def test_a_signal_that_was_ignored_stays_ignored_and_is_passed_on():
    program = """
import os, signal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from unstall.benchmark.signals import SignalRelay
with SignalRelay() as watch:
    os.kill(os.getpid(), signal.SIGHUP)
    print(watch.wait(0.1), watch.end_requests, signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGHUP)
print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, start_new_session=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["[1] [] True", "True"]


def test_a_handler_of_other_code_in_this_process_stays():
    program = """
import os, signal
signal.signal(signal.SIGALRM, lambda *_: print("its own"))
from unstall.benchmark.signals import SignalRelay
with SignalRelay() as watch:
    os.kill(os.getpid(), signal.SIGALRM)
    print(watch.wait(0.1))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, start_new_session=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["its own", "[]"]


def test_the_signals_blocked_are_those_of_before_again():
    program = """
import signal
from unstall.benchmark.signals import SignalRelay
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
with SignalRelay() as watch:
    print(set(watch.mask) == before)
print(signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, start_new_session=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["True", "True"]


def test_a_broken_pipe_of_unstalls_own_is_nobody_elses():
    program = """
import os
from unstall.benchmark.signals import SignalRelay
read_end, write_end = os.pipe()
os.close(read_end)
with SignalRelay() as watch:
    try:
        os.write(write_end, b"x")
    except BrokenPipeError:
        print("broken", watch.wait(0.1))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, start_new_session=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["broken []"]


def test_the_end_of_a_child_wakes_the_wait():
    program = """
import os
from unstall.benchmark.signals import SignalRelay
with SignalRelay() as watch:
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    print(watch.wait(60), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, start_new_session=True, check=True, timeout=50
    )
    assert done.stdout.strip() == "[] 7"


def test_the_canary_ends_when_unstall_is_killed():
    program = """
import os, signal
from unstall.benchmark.signals import SignalRelay
watch = SignalRelay()
watch.__enter__()
print(watch._canary.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, start_new_session=True, check=False, timeout=60
    )
    assert done.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 60
    while _is_running(int(done.stdout)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_running(int(done.stdout))


def _is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_signal_that_comes_while_the_handlers_are_taken_away_is_not_lost():
    program = """
import os, signal
from unstall.benchmark import signals
waitpid = os.waitpid
def interrupted(*words):
    os.kill(os.getpid(), signal.SIGINT)
    return waitpid(*words)
watch = signals.SignalRelay()
try:
    with watch:
        os.waitpid = interrupted
except KeyboardInterrupt:
    print("interrupted", watch.end_requests, os.path.exists(f"/proc/{watch._canary.pid}"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "interrupted [] False"


def test_no_descriptor_is_left_open():
    program = """
import os
from unstall.benchmark.signals import SignalRelay
def count(): return len(os.listdir("/proc/self/fd"))
before = count()
for _ in range(3):
    with SignalRelay() as watch:
        watch.wait(0)
print(count() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "0"


def test_a_schedulers_message_does_not_end_the_report():
    program = """
import os, signal
from unstall.benchmark.signals import ignore_messages
ignore_messages()
os.kill(os.getpid(), signal.SIGUSR1)
print("not ended", flush=True)
os.kill(os.getpid(), signal.SIGTERM)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == ("not ended\n", -signal.SIGTERM)
