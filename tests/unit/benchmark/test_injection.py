"""Recording inside a program that runs already, in real processes.

The programs run the scripts as Python 3.14 does for ``sys.remote_exec``: in ``__main__``, between two instructions of
the main thread.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from unstall.benchmark.attached import CannotAttach
from unstall.benchmark.injection import record, remote_exec
from unstall.benchmark.reader import read_all

pytestmark = pytest.mark.slow

PROGRAM = """
    import os, signal, sys, threading, time
    from pathlib import Path
    import torch
    from torch import nn


    def run_script(number, frame):
        exec(compile(Path("script").read_text(), "script", "exec"), sys.modules["__main__"].__dict__)


    signal.signal(signal.SIGUSR1, run_script)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    names = path = modules = steps = None
    names = set(globals())
    path = list(sys.path)
    while not Path("enough").exists():
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        steps = (steps or 0) + 1
        Path("ready").touch()
        time.sleep(0.002)
    assert set(globals()) == names, set(globals()) - names
    assert sys.path == path
    assert "unstall" not in sys.modules
    assert not [name for name in os.environ if name.startswith("UNSTALL")]
    assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
    print("unchanged")
"""


@pytest.fixture
def program(tmp_path, started):
    """A loop that runs what it is given, and its folder."""
    return started(PROGRAM, tmp_path), tmp_path


@pytest.fixture
def started():
    """Starts programs and waits until they are ready; they are ended with the test."""
    running = []

    def start(source, folder):
        import textwrap

        (folder / "train.py").write_text(textwrap.dedent(source))
        running.append(
            subprocess.Popen(
                [sys.executable, "train.py"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
        deadline = time.monotonic() + 120
        while not (folder / "ready").exists():
            assert running[-1].poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def by_signal(folder):
    """What stands in for ``sys.remote_exec`` in a program that has the handler."""

    def execute(pid, script):
        shutil.copy(script, folder / "script")
        os.kill(pid, signal.SIGUSR1)

    return execute


def recorded(process, folder, name, seconds=2.0):
    directory = folder / name
    directory.mkdir()
    observation = record(process.pid, directory, seconds, lambda session: None, execute=by_signal(folder))
    [recording] = read_all(directory)
    return observation, recording


def test_a_part_of_a_running_program_is_recorded_and_nothing_of_it_stays(program):
    process, folder = program
    observation, recording = recorded(process, folder, "first")
    assert 2.0 <= observation.ended - observation.began < 10
    assert {"forward", "backward", "optimizer"} <= {
        recording.phase_names[phase] for phase in recording.phase_indices(recording.spans) if phase >= 0
    }
    assert observation.samples
    size = (folder / "first" / f"rec-{process.pid}.bin").stat().st_size
    facts = (folder / "first" / f"info-{process.pid}.jsonl").read_text()
    time.sleep(0.5)  # the loop goes on, unrecorded
    assert (folder / "first" / f"rec-{process.pid}.bin").stat().st_size == size
    assert (folder / "first" / f"info-{process.pid}.jsonl").read_text() == facts
    assert not list(Path(tempfile.gettempdir()).glob(f"unstall-attach-*/*-{process.pid}.py"))
    (folder / "enough").touch()
    output, errors = process.communicate(timeout=60)
    assert (errors, output, process.returncode) == ("", "unchanged\n", 0)


def test_it_can_be_recorded_again(program):
    process, folder = program
    _, first = recorded(process, folder, "first", 1.0)
    _, second = recorded(process, folder, "second", 1.0)
    assert len(first.spans) and len(second.spans)
    assert first.spans["start"].max() < second.spans["start"].min()


def test_a_main_thread_that_does_not_come_to_it(program, tmp_path):
    process, _ = program
    (tmp_path / "recording").mkdir()
    with pytest.raises(CannotAttach, match="did not answer within 0 s: it is inside one long call"):
        record(
            process.pid,
            tmp_path / "recording",
            1.0,
            lambda session: None,
            execute=lambda pid, script: None,
            patience_s=0.2,
        )
    assert not list((tmp_path / "recording").iterdir())


def test_what_cannot_be_recorded_is_said_in_a_line(started, tmp_path):
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        with pytest.raises(CannotAttach, match="is no Python, and has started none"):
            record(sleeper.pid, tmp_path, 1.0, lambda session: None)
    finally:
        sleeper.kill()
        sleeper.wait()
    with pytest.raises(CannotAttach, match="there is no process"):
        record(sleeper.pid, tmp_path, 1.0, lambda session: None)
    environ = {**os.environ, "UNSTALL_RUN_DIR": str(tmp_path)}
    recorded_already = subprocess.Popen(
        [sys.executable, "-S", "-c", "print(flush=True); input()"],
        env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    recorded_already.stdout.readline()  # it has begun, or the kernel may not tell its environment yet
    try:
        with pytest.raises(CannotAttach, match="is under `unstall run` already"):
            record(recorded_already.pid, tmp_path, 1.0, lambda session: None)
    finally:
        recorded_already.kill()
        recorded_already.wait()


def test_what_cannot_be_reached_of_several_is_left_out(started, tmp_path):
    helper = PROGRAM.replace(
        "while not",
        "import subprocess\n    kept = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1)\n    while not",
        1,
    )
    process = started(helper, tmp_path)
    to_main = by_signal(tmp_path)

    def execute(pid, script):
        if pid != process.pid:
            raise CannotAttach("it is of an older Python")
        to_main(pid, script)

    (tmp_path / "recording").mkdir()
    record(process.pid, tmp_path / "recording", 1.0, lambda session: None, execute=execute)
    assert [recording.pid for recording in read_all(tmp_path / "recording")] == [process.pid]


@pytest.mark.skipif(hasattr(sys, "remote_exec"), reason="this Python can run a script in another")
def test_a_python_that_cannot_be_asked_is_named(program, tmp_path):
    process, _ = program
    with pytest.raises(CannotAttach, match=r"has a Python before 3\.14: look at it from outside"):
        remote_exec(process.pid, tmp_path / "script.py")
    assert process.poll() is None


def test_a_program_that_records_itself_is_left_alone(started, tmp_path):
    source = PROGRAM.replace("while not", "import unstall\n    unstall.profile().__enter__()\n    while not", 1)
    process = started(source, tmp_path)
    (tmp_path / "recording").mkdir()
    with pytest.raises(CannotAttach, match="unstall records this program already"):
        record(process.pid, tmp_path / "recording", 1.0, lambda session: None, execute=by_signal(tmp_path))
