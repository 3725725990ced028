"""memray on request: started in the main process, stopped once, never in the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("memray")

from unstall.child import main, memory

# What the bootstrap does: start memray while Python starts, stop it at exit.
BOOTSTRAP = """
import atexit, os
from unstall.child import memory
if not memory.is_worker_process():
    atexit.register(memory.start(os.environ["RUN_DIR"]))
"""

PROGRAM = """
import os, sys

def square(i):
    return i * i

def work():
    return sum(map(square, range(1000)))

def main():
    for _ in range(3):
        work()
    pid = os.fork()
    if pid == 0:
        work()
        sys.exit(0)  # runs what is registered for the exit, in the fork too
    os.waitpid(pid, 0)
    print("done")

if __name__ == "__main__":
    main()
    sys.exit(3)
"""


@pytest.fixture
def run(tmp_path):
    """Run a program with memray started in it; returns the finished process and the run directory."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(BOOTSTRAP)
    source = os.path.dirname(os.path.dirname(os.path.dirname(memory.__file__)))
    run_dir = tmp_path / "a run"
    run_dir.mkdir()

    def start(program=PROGRAM):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(program))
        done = subprocess.run(
            [sys.executable, str(script)],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join((str(site), source)),
                "RUN_DIR": str(run_dir),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return done, run_dir

    return start


def test_memray_writes_one_recording(run):
    done, run_dir = run()
    assert (done.returncode, done.stdout, done.stderr) == (3, "done\n", "")
    (file,) = run_dir.iterdir()
    assert file.name.startswith("memray-") and file.stat().st_size > 0


def test_spawned_workers_are_left_alone(run):
    program = """
    import multiprocessing

    def double(i):
        return 2 * i

    if __name__ == "__main__":
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            print(pool.map(double, range(3)))
    """
    done, run_dir = run(program)
    assert (done.returncode, done.stdout) == (0, "[0, 2, 4]\n"), done.stderr
    assert len(list(run_dir.iterdir())) == 1


def test_a_recording_that_cannot_be_ended_is_told_and_does_not_touch_the_program(tmp_path):
    def stop():
        raise OSError("no space left")

    main.Child(str(tmp_path), {})._stop_memory(stop)
    (line,) = (tmp_path / f"info-{os.getpid()}.jsonl").read_text().splitlines()
    assert json.loads(line)["error"] == "no space left"


def test_a_missing_memray_says_in_one_line_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "memray", None)
    with pytest.raises(RuntimeError, match=r"-m pip install memray$") as raised:
        memory.start(str(tmp_path))
    assert "\n" not in str(raised.value)
