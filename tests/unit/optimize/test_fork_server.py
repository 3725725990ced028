"""Which programs may be started by a fork, and the process that forks."""

import json
import signal
import socket
import subprocess
import sys
import threading

import pytest

from unstall.optimize import fork_server
from unstall.optimize.fork_server import ForkedProcess, ForkServer, ForkServerEnded, can_fork


@pytest.mark.parametrize(
    ("line", "may"),
    [
        (["/usr/bin/python3.11", "train.py", "--epochs", "3"], True),
        (["/usr/bin/python", "-m", "package.train"], True),
        (["/usr/bin/python", "-m"], False),
        (["/usr/bin/python", "-c", "import torch"], False),
        (["/usr/bin/python", "-O", "train.py"], False),
        (["/usr/bin/python", "folder"], False),
        (["/usr/bin/python"], False),
        (["/opt/bin/torchrun", "train.py"], False),
    ],
)
def test_what_may_be_a_fork(monkeypatch, line, may):
    monkeypatch.setattr(fork_server, "_DEVICES", ())
    assert can_fork(line) is may


def test_nothing_is_forked_where_a_gpus_driver_is(monkeypatch, tmp_path):
    monkeypatch.setattr(fork_server, "_DEVICES", (str(tmp_path / "nvidia[0-9]*"),))
    assert can_fork(["/usr/bin/python", "train.py"])
    (tmp_path / "nvidia0").touch()
    assert not can_fork(["/usr/bin/python", "train.py"])


class Answering:
    """A server whose process is one that sleeps, and whose answers are these."""

    def __init__(self, *answers):
        channel, self.other = socket.socketpair()
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        self.server = ForkServer(process, channel)
        self.answer(*answers)

    def answer(self, *answers):
        for answer in answers:
            self.other.sendall(answer)

    def end(self):
        self.other.close()


@pytest.fixture
def answering():
    made = []

    def make(*answers):
        made.append(Answering(*answers))
        return made[-1]

    yield make
    for each in made:
        each.server.close()
        each.end()


def test_a_fork_is_asked_for_once_the_server_is_ready_and_ends_with_its_exit_code(answering):
    one = answering(b"rea", b"dy\n", b"4711\n")
    process = one.server.fork({"words": ["python", "train.py"]})
    assert json.loads(one.other.recv(4096)) == {"words": ["python", "train.py"]}
    assert (process.pid, process.poll(), process.returncode) == (4711, None, None)
    one.answer(b"3 ", b"12.5\n")
    assert (process.poll(), process.returncode, process.cpu_s) == (3, 3, 12.5)
    assert process.poll() == 3


def test_the_end_of_a_fork_is_waited_for(answering):
    one = answering(b"ready\n", b"4711\n")
    process = one.server.fork({})
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    timer = threading.Timer(0.05, one.answer, [b"-9 0.5\n"])
    timer.start()
    assert process.wait(30) == -signal.SIGKILL
    timer.join()


def test_a_server_that_ends_says_so(answering):
    one = answering()
    one.end()
    with pytest.raises(ForkServerEnded):
        one.server.fork({})


def test_a_fork_whose_server_is_gone_counts_as_killed(answering):
    one = answering(b"ready\n", b"4711\n")
    process = one.server.fork({})
    one.end()
    assert process.wait(5) == -signal.SIGKILL


def test_signals_go_to_the_fork_and_never_to_one_that_has_ended(answering):
    one = answering()
    running = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process = ForkedProcess(one.server, running.pid)
    process.terminate()
    assert running.wait(30) == -signal.SIGTERM
    ended = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process = ForkedProcess(one.server, ended.pid)
    one.answer(b"0 0.1\n")
    process.kill()
    assert ended.poll() is None
    ended.kill()
    ended.wait()
