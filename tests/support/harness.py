"""Runs little programs, with unstall and without, and sees that no process of theirs is left behind.

Every program runs in a session of its own (so that a signal can be sent to its group as a terminal sends Ctrl-C), with
an environment variable by which all its descendants can be found, whatever became of their parents.
"""

import contextlib
import difflib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import uuid
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import jsonschema
import pytest

from unstall.report.schema import schema

_MARK = "UNSTALL_TEST_MARK"
_LIMIT_S = 150.0
_GONE_WITHIN_S = 5.0

UNSTALL = (sys.executable, "-m", "unstall", "run")


@dataclass(frozen=True)
class Result:
    """How a program ended: its exit code, or minus the signal that killed it; what it wrote; the report, if any."""

    status: int
    stdout: bytes
    stderr: bytes
    report_bytes: bytes | None = None

    @property
    def out(self):
        return self.stdout.decode()

    @property
    def err(self):
        return self.stderr.decode()

    @cached_property
    def report(self):
        """The report, checked against the published schema; fails the test where there is none."""
        assert self.report_bytes is not None, f"no report was written; stderr:\n{self.err}"
        report = json.loads(self.report_bytes)
        jsonschema.validate(report, schema(), jsonschema.Draft202012Validator)
        if report["run"]["steps"]:
            assert sum(phase["share"] for phase in report["phases"]) == pytest.approx(1, abs=0.02)
        return report

    @property
    def steps(self):
        return self.report["run"]["steps"]

    @property
    def notes(self):
        return "\n".join(self.report["run"]["notes"])


class Running:
    """A program that was started: wait for what it writes, send it signals, take its result."""

    def __init__(self, command, folder, mark, *, cwd, env, stdin, report_path):
        self.mark = mark
        self.report_path = report_path
        self._out, self._err = folder / f"stdout-{mark}", folder / f"stderr-{mark}"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                command, cwd=cwd, env=env, stdin=stdin, stdout=out, stderr=err, start_new_session=True
            )

    def wait_for(self, text):
        """Wait until the program has written ``text`` to stdout."""
        deadline = time.monotonic() + _LIMIT_S
        while text.encode() not in self._out.read_bytes():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.end()
                pytest.fail(f"the program never wrote {text!r}; stderr:\n{self._err.read_text()}")
            time.sleep(0.02)

    def signal(self, number, *, group=False):
        """Send a signal to the process that was started alone, or to its whole group as a terminal does."""
        if group:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)

    def result(self):
        """Wait for the end; fails the test if there is none, or if a process is left behind."""
        try:
            status = self.process.wait(_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.end()
            pytest.fail(f"the program did not end; stderr:\n{self._err.read_text()}")
        self._expect_nothing_left()
        report = None
        if self.report_path is not None and self.report_path.exists():
            report = self.report_path.read_bytes()
        return Result(status, self._out.read_bytes(), self._err.read_bytes(), report)

    def end(self):
        """Kill whatever of the program still runs."""
        for pid in marked(self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)

    def _expect_nothing_left(self):
        deadline = time.monotonic() + _GONE_WITHIN_S
        while left := marked(self.mark):
            if time.monotonic() > deadline:
                commands = {pid: _command_line(pid) for pid in left}
                self.end()
                pytest.fail(f"processes are left behind: {commands}")
            time.sleep(0.05)


def free_port():
    """A port of this machine that nobody listens on, as a word of a command."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def marked(mark):
    """The processes that carry this mark in their environment; those that have ended carry none."""
    wanted = f"{_MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def _command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "gone"


class Workspace:
    """A working directory for programs, and everything of theirs that is not to be in it beside it."""

    def __init__(self, folder):
        self.beside = folder
        self.folder = folder / "work"
        self.folder.mkdir()
        self._started = []

    @property
    def state(self):
        """Where the runs and the ledger of the working directory are kept, once there are any."""
        (state,) = (self.beside / "state" / "unstall").glob(f"{self.folder.name}-*")
        return state

    def write(self, name, source):
        """Write a file of the program's, its indentation taken off."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source).lstrip("\n"), encoding="utf-8")
        return path

    def start(self, command, *, cwd=None, env=None, stdin=None, report_path=None):
        """Start any command; ``env`` is added to this process's own."""
        mark = uuid.uuid4().hex
        own = {_MARK: mark, "PYTHONDONTWRITEBYTECODE": "1", "XDG_STATE_HOME": os.fspath(self.beside / "state")}
        environment = os.environ | own | (env or {})
        if stdin is not None:
            (self.beside / f"stdin-{mark}").write_bytes(stdin)
        with open(os.devnull if stdin is None else self.beside / f"stdin-{mark}", "rb") as given:
            running = Running(
                [os.fspath(word) for word in command],
                self.beside,
                mark,
                cwd=cwd or self.folder,
                env=environment,
                stdin=given,
                report_path=report_path,
            )
        self._started.append(running)
        return running

    def start_watched(self, *words, options=(), wrapper=(), unstall=UNSTALL, **kwargs):
        """Start ``unstall run OPTIONS WORDS``; ``wrapper``: words to put before it all."""
        report_path = self.beside / f"report-{uuid.uuid4().hex}.json"
        command = [*wrapper, *unstall, "--json", report_path, *options, *words]
        return self.start(command, report_path=report_path, **kwargs)

    def plain(self, *words, wrapper=(), **kwargs):
        """Run ``python WORDS`` to its end; ``wrapper``: words to put before the command."""
        return self.start([*wrapper, sys.executable, *words], **kwargs).result()

    def watched(self, *words, **kwargs):
        """Run ``unstall run WORDS`` to its end."""
        return self.start_watched(*words, **kwargs).result()

    def both(self, *words, **kwargs):
        """Run without and with unstall, and see that the program's exit code and output are the same."""
        plain, watched = self.plain(*words, **kwargs), self.watched(*words, **kwargs)
        assert_same(plain, watched)
        return plain, watched

    def close(self):
        """End what a failed test has left running."""
        for running in self._started:
            running.end()


def assert_same(plain, watched):
    """Same exit code, same bytes on stdout, and on stderr the same lines with the report after them."""
    for name, before, after in (
        ("stdout", plain.stdout, watched.stdout),
        ("stderr", plain.stderr, watched.stderr[: len(plain.stderr)]),
    ):
        if after != before:
            lines = (text.decode(errors="backslashreplace").splitlines() for text in (before, after))
            differences = "\n".join(difflib.unified_diff(*lines, "without unstall", "with unstall", n=1, lineterm=""))
            pytest.fail(f"{name} differs:\n{differences[:8000]}\nstderr with unstall:\n{watched.err[-3000:]}")
    assert watched.status == plain.status


def further_in_long(names, further):
    """Parameters of a test: ``make test`` leaves out those of ``further``, cases of what others show too."""
    return [pytest.param(name, marks=pytest.mark.long) if name in further else name for name in names]


def can_overlay(folder):
    """Whether programs can be run on an overlay here."""
    from unstall.sandbox import SandboxError, open_sandbox

    try:
        with open_sandbox(folder, [folder]):
            return True
    except SandboxError:
        return False
