"""What a run takes of the machine, of real processes and of made-up runs."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from unstall.prove.effects import Effects
from unstall.prove.machine_use import MachineUse, more_of_it
from unstall.prove.runner import WholeRun
from unstall.prove.timing import ProofPair

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")

PROGRAM = """
import fcntl, subprocess, sys, time
held = open(sys.argv[1])
fcntl.flock(held, getattr(fcntl, sys.argv[2]))
helper = subprocess.Popen([sys.executable, "-c", "while True: pass"])
print("begun", flush=True)
sys.stdin.read()
helper.kill()
"""


@pytest.mark.parametrize(("kind", "is_alone"), [("LOCK_EX", True), ("LOCK_SH", False)])
def test_processes_below_are_counted_and_a_lock_of_its_own_is_seen(tmp_path, kind, is_alone):
    (tmp_path / "file").touch()
    words = [sys.executable, "-c", PROGRAM, str(tmp_path / "file"), kind]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        use = MachineUse(process.pid)
        process.stdout.readline()
        while use.cpu_s < 0.5:  # of the helper: the program itself waits
            use.note()
            time.sleep(0.01)
        process.stdin.close()
    assert (use.locked > 0.5) == is_alone, "of the looks"
    assert use.most_threads == 2


def test_nothing_is_seen_of_a_process_that_is_gone():
    use = MachineUse(2**22 + 1)
    use.note()
    assert (use.cpu_s, use.locked) == (0.0, 0.0)


def run(cpu_s=1.0, **given):
    return WholeRun(1.0, False, 0.0, Effects(0, ""), cpu_s=cpu_s, **given)


@pytest.mark.parametrize(
    ("original", "changed", "words"),
    [
        (run(2.0), run(6.0), "it takes 6.0 s of the cores in a run, and the original 2.0 s"),
        (run(), run(locked=0.9), "it holds a lock"),
        (run(most_threads=4), run(most_threads=300), "it has 300 threads at once, and the original 4"),
        (run(most_threads=4), run(most_threads=40), None),
        (run(most_threads=100), run(most_threads=300), None),
        (run(2.0), run(3.5), None),
        (run(0.1), run(0.8), None),
        (run(locked=0.9), run(locked=0.9), None),
    ],
)
def test_what_is_taken_beside_the_results(original, changed, words):
    found = more_of_it([ProofPair(original, changed)] * 3)
    assert found is None if words is None else found.startswith(words)


def test_a_lock_that_one_run_holds_is_none():
    assert more_of_it([ProofPair(run(), run(locked=0.9)), ProofPair(run(), run())]) is None
    assert more_of_it([]) is None
