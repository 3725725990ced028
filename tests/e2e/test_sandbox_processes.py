"""What an experiment starts ends with the sandbox, wherever it has gone; what cannot be ended is told."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from sandbox_driver import SandboxDriver, running, wait_until

# Each starts a daemon, "sleep SECONDS", that has left something behind it by which it could be found.
_DAEMONS = {
    "in the background": "sleep {} &",
    "in a session of its own": "setsid -f sleep {}",
    "orphaned twice": "(setsid sh -c 'sleep {} & exit' & )",
    "without an environment": "env -i setsid -f sleep {}",
    "in mounts of its own": "setsid -f unshare {user} --mount sleep {}",
    "in mounts of its own, without an environment": "env -i setsid -f unshare {user} --mount sleep {}",
    "in namespaces of its own": "env -i setsid -f unshare {user} --mount --net --ipc --pid --fork sleep {}",
    "where the sandbox does not show": (
        "env -i setsid -f unshare {user} --mount sh -c 'mount -t tmpfs none /mnt; mkdir /mnt/old /mnt/bin; "
        "cp /bin/sleep /mnt; mount --bind /lib /mnt/bin; exec sleep {}'"
    ),
    "in a tree without the sandbox": (
        "env -i setsid -f unshare {user} --mount --net --ipc sh -c 'mount -t tmpfs none /mnt; cd /mnt; "
        "mkdir old bin lib lib64 usr proc; for name in bin lib lib64 usr proc; do mount --rbind /$name $name; done; "
        "/sbin/pivot_root . old; umount -l /old; exec /bin/sleep {}'"
    ),
}


@pytest.fixture(params=["root", "ordinary user"])
def driver(request):
    made = SandboxDriver(request.param == "ordinary user")
    yield made
    made.close()


def _start_daemons(driver):
    """A script that starts them all, with the words by which they are found."""
    user = "-Ur" if driver.ordinary else ""
    words = [f"{100 + number}.{time.monotonic_ns()}" for number in range(len(_DAEMONS))]
    lines = [line.replace("{user}", user).replace("{}", word) for line, word in zip(_DAEMONS.values(), words)]
    return "exec > /dev/null 2>&1\n" + "\n".join(lines), words


def _all_run(words):
    return all(_sleeping(word) for word in words)


def _sleeping(word):
    return {pid for pid in running(word) if Path(f"/proc/{pid}/comm").read_text() == "sleep\n"}


def _left(words):
    return {name: pids for name, word in zip(_DAEMONS, words) if (pids := running(word))}


@pytest.mark.parametrize("how", ["closed", "interrupted", "killed"])
def test_every_daemon_ends_with_the_sandbox(driver, how):
    script, words = _start_daemons(driver)
    wait = "sleep 1" if how == "closed" else "sleep 60"
    started = driver.start(["sh", "-c", f"{script}\n{wait}"])
    try:
        assert json.loads(started.stdout.readline())["force"] == "overlay"
        assert wait_until(lambda: _all_run(words)), _left(words)
        if how == "interrupted":
            os.killpg(started.pid, signal.SIGINT)
        elif how == "killed":
            started.kill()
        started.wait(60)
        assert wait_until(lambda: not _left(words)), _left(words)
    finally:
        _kill_all(words)
        started.stdout.close()


def _kill_all(words):
    for word in words:
        for pid in running(word):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_a_keeper_that_is_killed_is_replaced(driver):
    script, words = _start_daemons(driver)
    started = driver.start(["sh", "-c", f"{script}\nsleep 4"])
    home = json.loads(started.stdout.readline())["home"]
    try:
        assert wait_until(lambda: _all_run(words))
        _kill_keepers(home)
        output = started.stdout.read()
        assert started.wait(60) == 0, output
        # Without the keeper's own memory those are known that have the sandbox among their mounts or in their
        # environment, or a control group, which only root has here.
        assert not _left(words), _left(words)
        assert not Path(home).exists()
    finally:
        _kill_all(words)
        started.stdout.close()


def _kill_keepers(home):
    """Kill them, and wait until they hold nothing any more: their claim of the home, among others."""
    keepers = _keepers(home)
    for pid in keepers:
        os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not any(_holds_files(pid) for pid in keepers))


def _holds_files(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    return False


def _keepers(home):
    return {pid for pid in running(home) if b"keeper.py" in Path(f"/proc/{pid}/cmdline").read_bytes()}


def test_what_is_left_is_told_at_the_next_start_with_the_command_that_ends_it(driver):
    word = f"99.{time.monotonic_ns()}"
    started = driver.start(["sh", "-c", f"setsid -f sleep {word} > /dev/null 2>&1; sleep 60"])
    home = json.loads(started.stdout.readline())["home"]
    try:
        assert wait_until(lambda: _sleeping(word))
        _kill_keepers(home)
        started.kill()
        started.wait(30)
        left = sorted(running(word))
        (told,) = [line for line in driver.run(["true"])["told"] if home in line]
        assert "sleep" in told.partition("running (")[2].partition(")")[0]
        command = told.partition("to end, ")[2]
        assert command.startswith("kill -9 ") and set(map(str, left)) <= set(command.split())
        assert running(word) and Path(home).is_dir()  # nothing was ended unasked
        subprocess.run(command.split(), check=True)
        assert wait_until(lambda: not running(word))
        assert [line for line in driver.run(["true"])["told"] if home in line] == []
        assert not Path(home).exists()
    finally:
        _kill_all([word])
        shutil.rmtree(home, ignore_errors=True)
        started.stdout.close()


def test_a_sandbox_in_use_is_left_alone_by_another(driver):
    """Its keeper may even be gone: the experimenter is there."""
    word = f"8.{time.monotonic_ns()}"
    started = driver.start(["sleep", word])
    home = json.loads(started.stdout.readline())["home"]
    assert wait_until(lambda: _sleeping(word))
    _kill_keepers(home)
    assert driver.run(["true"])["told"] == []
    assert Path(home).is_dir() and started.poll() is None
    assert '"status": 0' in started.communicate(timeout=60)[0]
    assert not Path(home).exists()
