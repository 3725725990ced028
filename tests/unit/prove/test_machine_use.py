"""What a run takes of the machine, of real processes and of made-up runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from unstall.prove.left_behind.effects import Effects
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
        (run(most_descriptors=40), run(most_descriptors=900), "it has 900 files open at once, and the original 40"),
        (run(), run(addresses={"tcp port 6117"}), "it uses tcp port 6117 in each run, which two at a time cannot"),
        (run(addresses={"tcp port 6117"}), run(addresses={"tcp port 6117"}), None),
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


def test_an_address_that_is_another_in_each_run_is_none():
    runs = [run(addresses=frozenset({f"tcp port {port}"})) for port in (40000, 40001)]
    assert more_of_it([ProofPair(run(), each) for each in runs]) is None


LISTENING = """
import socket, subprocess, sys
served = socket.create_server(("127.0.0.1", 0))
named = socket.socket(socket.AF_UNIX)
named.bind(sys.argv[1])
files = [open("/dev/null") for _ in range(40)]
print(served.getsockname()[1], flush=True)
sys.stdin.read()
"""


def test_sockets_and_open_files_of_processes_below_are_seen():
    name = f"@unstall-{os.getpid()}"
    inner = [sys.executable, "-c", LISTENING.replace("sys.argv[1]", repr(name.replace("@", chr(0))))]
    outer = f"import subprocess; subprocess.run({inner!r})"
    with subprocess.Popen([sys.executable, "-c", outer], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        port = int(process.stdout.readline())
        use = MachineUse(process.pid)
        use.note()
        process.stdin.close()
    assert use.addresses == {f"tcp port {port}", f"the local address {name}"}
    assert use.most_descriptors > 40


def test_the_cores_time_of_those_that_were_waited_for_counts():
    use = MachineUse(2**22 + 1)
    use.end(3.5)
    assert use.cpu_s == 3.5
