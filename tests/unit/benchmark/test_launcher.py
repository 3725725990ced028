"""What becomes of the processes that a program leaves behind. Each test runs in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time

import pytest

from unstall.benchmark import launcher

LAUNCH = """
import sys
from pathlib import Path
from unstall.benchmark import launcher

folder = Path(sys.argv[1])
(folder / "run").mkdir()
patience = dict(stop_patience_s=0.4, orphans_patience_s=0.4)
options = launcher.RecordingOptions(steps={steps}, sampling=False, probing=False, **patience)
outcome = launcher.launch([sys.executable, str(folder / "program.py")], folder / "run", options, lambda session: None)
print(outcome.status)
"""

# Detached in one way or another, it records itself, as a service that the program starts would.
PROGRAM = """
import os, signal, sys, time
import unstall

def leave(detach, name):
    if os.fork():
        return
    if "session" in detach:
        os.setsid()
    if "twice" in detach and os.fork():
        os._exit(0)
    with unstall.span("daemon"):
        open(name + ".began", "w").close()
    time.sleep(2.5)
    open(name + ".survived", "w").close()
    os._exit(0)

os.chdir(os.path.dirname(os.path.abspath(__file__)))
for detach in {detached}:
    leave(detach, detach)
while any(not os.path.exists(detach + ".began") for detach in {detached}):
    time.sleep(0.01)
{ending}
"""


def survivors(folder, ending, *, detached=("session", "twice", "session twice"), steps=None):
    (folder / "program.py").write_text(PROGRAM.format(ending=textwrap.dedent(ending), detached=list(detached)))
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH.format(steps=steps), str(folder)],
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=60,
        check=True,
    )
    deadline = time.monotonic() + 4
    while len(found := sorted(path.stem for path in folder.glob("*.survived"))) < len(detached):
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return int(done.stdout), found


@pytest.mark.parametrize("ending", ["os.kill(os.getpid(), signal.SIGTERM)", "os.kill(os.getpid(), signal.SIGKILL)", ""])
def test_a_daemon_survives_the_program_as_without_unstall(tmp_path, ending):
    status, found = survivors(tmp_path, ending)
    assert (status < 0) == bool(ending)
    assert found == ["session", "session twice", "twice"]


def test_of_a_program_that_unstall_had_to_kill_only_daemons_survive(tmp_path):
    ending = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        try:
            for _ in unstall.steps(range(10_000)):
                time.sleep(0.002)
        except SystemExit:
            pass
    """
    status, found = survivors(tmp_path, ending, detached=("session", "worker"), steps=5)
    assert status == -9
    assert found == ["session"]


def test_a_bare_python_at_the_entrance_of_a_sandbox_does_not_keep_the_program_from_being_recorded(tmp_path):
    command = ["python", "-S", "enter.py", "python", "train.py"]
    inside = launcher.environment(command, tmp_path, launcher.RecordingOptions(entrance=command[:3]))
    assert str(launcher.BOOTSTRAP) in inside["PYTHONPATH"].split(os.pathsep)
    outside = launcher.environment(command, tmp_path, launcher.RecordingOptions())
    assert str(launcher.BOOTSTRAP) not in outside.get("PYTHONPATH", "").split(os.pathsep)
