"""What real processes take of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from unstall.prove.machine_use import MachineUse

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
