"""Start trials as forks of one process that has imported torch, where that makes no difference to the program.

Importing torch, and the compiler that its optimizers import, takes most of a small program's start, and a search starts
the program again and again. :mod:`unstall.child.trial.fork_server` is the other side.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import select
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unstall.child.trial import fork_server
from unstall.optimize.thresholds import FORK_SERVER_START_S

UNFIT = fork_server.UNFIT
_PRELOADED = ("numpy", "torch", "torch._dynamo")
"""The last one is imported by torch itself, when a program makes its first optimizer."""
_PYTHON = re.compile(r"python[0-9.]*")
_DEVICES = ("/dev/nvidia[0-9]*", "/dev/kfd", "/dev/dxg")


class ForkServerEnded(Exception):
    """It cannot fork: it has ended, or did not start."""


def can_fork(line: Sequence[str]) -> bool:
    """Whether a program may be started by a fork: a script or a module of plain Python, where no GPU's driver is, which
    a process and its forks cannot both use.
    """
    if len(line) < 2 or not _PYTHON.fullmatch(Path(line[0]).name) or any(map(glob.glob, _DEVICES)):
        return False
    return len(line) > 2 if line[1] == "-m" else line[1].endswith((".py", ".pyw"))


class ForkServer:
    """One process that forks, in the place of interpreters that start."""

    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket):
        self.process, self.channel = process, channel
        self.is_ready = False
        self.unread = b""

    @classmethod
    def begin(cls, python: str, env: Mapping[str, str]) -> ForkServer:
        """Begin to start it; the first fork waits until that is done. ``env``: the program's own environment."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [python, fork_server.__file__, str(theirs.fileno()), *_PRELOADED],
                env=dict(env), pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        return cls(process, ours)

    def wait_until_ready(self) -> None:
        """Wait until it has imported all that it is to import. Raises ForkServerEnded."""
        if not self.is_ready and self.line(FORK_SERVER_START_S) is None:
            raise ForkServerEnded("it did not start in time")
        self.is_ready = True

    def fork(self, request: Mapping[str, Any]) -> ForkedProcess:
        """A new process, as fork_server.Request has it. Raises ForkServerEnded."""
        self.wait_until_ready()
        try:
            self.channel.sendall(json.dumps(dict(request)).encode() + b"\n")
        except OSError as error:
            raise ForkServerEnded(str(error)) from None
        pid = self.line(FORK_SERVER_START_S)
        if pid is None:
            raise ForkServerEnded("no answer")
        return ForkedProcess(self, int(pid))

    def line(self, timeout: float = 0.0) -> str | None:
        """The next line that it has written; None while there is none. Raises ForkServerEnded."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self.unread:
            readable, _, _ = select.select([self.channel], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                return None
            try:
                received = self.channel.recv(4096)
            except ConnectionResetError:  # it has ended without having read all
                received = b""
            if not received:
                raise ForkServerEnded("it has ended")
            self.unread += received
        line, _, self.unread = self.unread.partition(b"\n")
        return line.decode()

    def close(self) -> None:
        """End it."""
        self.channel.close()
        self.process.kill()
        self.process.wait()


class ForkedProcess:
    """A process of the server's, used like one of subprocess.Popen's."""

    def __init__(self, server: ForkServer, pid: int):
        self.server, self.pid = server, pid
        self.returncode: int | None = None
        self.cpu_s = 0.0
        """Processor time of it and of its children, once it has ended."""

    def poll(self) -> int | None:
        """Its exit code, minus the signal that ended it; None while it runs."""
        if self.returncode is None:
            self._read(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The same, once it has ended. Raises subprocess.TimeoutExpired."""
        while self.returncode is None:
            if not self._read(timeout if timeout is not None else FORK_SERVER_START_S) and timeout is not None:
                raise subprocess.TimeoutExpired("a fork", timeout)
        return self.returncode

    def _read(self, timeout: float) -> bool:
        try:
            line = self.server.line(timeout)
        except ForkServerEnded:
            line = f"{-signal.SIGKILL} 0"
        if line is not None:
            status, cpu_s = line.split()
            self.returncode, self.cpu_s = int(status), float(cpu_s)
        return line is not None

    def terminate(self) -> None:
        """Send it SIGTERM."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send it SIGKILL."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
