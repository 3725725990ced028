"""Ctrl-C ends every verb in each of its phases, whatever the program does about it; and so do two."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import kineto_files
import psutil
import pytest
from programs import READINGS
from sandbox_driver import running, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(700)]

_WAITS_AT_MOST_S = 2.0  # wherever it is patient with what does not stop, it is so for longer
_INTERRUPTED = 130
_PATIENCE_S = 600.0
_STUBBORN = "import signal\nfor number in (signal.SIGINT, signal.SIGTERM):\n    signal.signal(number, signal.SIG_IGN)\n"
_TRACED_STEPS = 60_000

# What a verb shows in a phase; nothing for the beginning, while it imports.
_OF_PROGRAMS = {
    "optimize": (
        "",
        "diagnosing the program as it is",
        "what the original computes, twice",
        "trying ",
        "does it compute the same?",
        "the original and the changed program side by side",
    ),
    "simplify": ("", "a first run, only watched", " tried · "),
    "data": ("", "measuring the data pipeline"),
    "gate": ("", "a first run, which does not count", "pair 1 of"),
}
_SOON = ("a first run", "diagnosing the program", "measuring the data")
"""Phases that begin within seconds; `make attack` waits for the others too."""
_PROGRAM_PHASES = [
    pytest.param(verb, phase, marks=() if phase == "" or phase.startswith(_SOON) else pytest.mark.attack)
    for verb, phases in _OF_PROGRAMS.items()
    for phase in phases
]
_OPTIONS = {"gate": ["--baseline", "HEAD"], "optimize": ["--worth", "0.8"]}
_FEW_STEPS = ["--steps", "5"]  # of a gate that need not find out how many it takes

_either_way = pytest.mark.parametrize(
    ("to_all", "again"), [(False, True), (True, False)], ids=["twice to it alone", "once to all"]
)


class _Terminal:
    """A verb whose messages go to a terminal, in a process group of its own."""

    def __init__(self, folder: Path, words: Sequence[object]):
        (folder / "tmp").mkdir(exist_ok=True)
        self.temporary = folder / "tmp"
        self._shown = b""
        self._reading, writing = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "unstall", *map(str, words)],
            cwd=folder,
            env={**os.environ, "TMPDIR": str(self.temporary), "TERM": "xterm", "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=writing,
            start_new_session=True,
        )
        os.close(writing)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # how a terminal says that nobody is left at its other end
            while read := os.read(self._reading, 4096):
                self._shown += read

    @property
    def shown(self) -> str:
        return self._shown.decode(errors="replace")

    def wait_for(self, text: str) -> None:
        assert wait_until(lambda: text in self.shown or self.process.poll() is not None, _PATIENCE_S), self.shown
        assert self.process.poll() is None, self.shown

    def interrupt(self, *, to_all: bool, again: bool) -> float:
        """Ctrl-C as a terminal sends it, to the whole group, or to the verb alone; seconds that it then waits.

        What it waits for a core, as others have it, is no choice of its own.
        """
        send = os.killpg if to_all else os.kill
        began, before_s = time.monotonic(), self._runnable_s()
        send(self.process.pid, signal.SIGINT)
        if again:
            time.sleep(0.2)
            with contextlib.suppress(ProcessLookupError):
                send(self.process.pid, signal.SIGINT)
        assert wait_until(self._has_ended, 60), self.shown
        seconds = time.monotonic() - began
        return seconds - (self._runnable_s() - before_s)

    def _has_ended(self) -> bool:
        """Whether it has; the kernel keeps what it knows of it until somebody takes its exit code."""
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _runnable_s(self) -> float:
        """Seconds that its main thread has had a core or waited for one; 0 where the kernel does not count them."""
        try:
            on_core, waiting, _ = Path(f"/proc/{self.process.pid}/schedstat").read_text().split()
        except OSError:
            return 0.0
        return (int(on_core) + int(waiting)) / 1e9

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        os.close(self._reading)


@pytest.fixture
def start(tmp_path):
    """Starts a verb in a terminal."""
    terminals = []

    def started(*words):
        terminals.append(_Terminal(tmp_path, words))
        return terminals[-1]

    yield started
    for terminal in terminals:
        terminal.close()


def assert_interrupted(terminal: _Terminal, waited_s: float, mark: str) -> None:
    """``mark`` stands in the command line of the verb, and in those of all the processes that it starts."""
    # where Python is beginning or ending, the signal ends it on its own: a shell says 130 of that too
    assert terminal.process.wait() in (_INTERRUPTED, -signal.SIGINT), terminal.shown
    assert "Traceback" not in terminal.shown, terminal.shown
    assert waited_s < _WAITS_AT_MOST_S, terminal.shown
    assert wait_until(lambda: not running(mark))
    gone = wait_until(lambda: not list(terminal.temporary.glob("unstall-*")))
    assert gone, sorted(map(str, terminal.temporary.rglob("*")))


@_either_way
@pytest.mark.parametrize(("verb", "phase"), _PROGRAM_PHASES)
def test_a_verb_that_runs_programs_ends_at_once_and_leaves_nothing(tmp_path, start, verb, phase, to_all, again):
    name = f"train_{time.monotonic_ns()}.py"
    (tmp_path / name).write_text(_STUBBORN + READINGS)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost"]
    for words in (["init", "-q"], ["add", name], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    options = [*_OPTIONS.get(verb, ()), *(_FEW_STEPS if phase.startswith("pair") else ())]
    terminal = start(verb, "--no-sandbox", *options, name)
    if phase:
        terminal.wait_for(phase)
        assert wait_until(lambda: running(name) - {terminal.process.pid}, 60)
    time.sleep(0.5)
    assert_interrupted(terminal, terminal.interrupt(to_all=to_all, again=again), name)
    trees = subprocess.run(["git", "worktree", "list"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert len(trees.splitlines()) == 1, trees
    assert sorted(path.name for path in tmp_path.iterdir()) == [".git", "tmp", name]


@pytest.fixture(scope="module")
def large_trace(tmp_path_factory):
    """A trace that takes seconds to read."""
    path = tmp_path_factory.mktemp("traces") / f"trace_{time.monotonic_ns()}.json"
    path.write_text(json.dumps(kineto_files.document(kineto_files.small(_TRACED_STEPS))))
    return path


@_either_way
@pytest.mark.parametrize(
    "after_s", [1.0, *(pytest.param(after_s, marks=pytest.mark.attack) for after_s in (0.2, 2.0, 3.5))]
)
@pytest.mark.parametrize("ranks", [1, 4])
def test_trace_ends_at_once_and_leaves_nothing(tmp_path, start, large_trace, ranks, after_s, to_all, again):
    """One file is read in the process itself, several in processes of their own."""
    files = [tmp_path / f"{number}-{large_trace.name}" for number in range(ranks)]
    for file in files:
        os.link(large_trace, file)
    terminal = start("trace", *files)
    time.sleep(after_s)
    readers = psutil.Process(terminal.process.pid).children(recursive=True)
    waited_s = terminal.interrupt(to_all=to_all, again=again)
    if terminal.process.wait() != 0:  # it had not ended before
        assert_interrupted(terminal, waited_s, str(files[0]))
    assert wait_until(lambda: not any(reader.is_running() for reader in readers))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A recorded run that takes a while to be asked about."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "train.py").write_text(READINGS)
    run = [sys.executable, "-m", "unstall", "run", "--steps", "40", "--json", "report.json", "train.py"]
    subprocess.run(run, cwd=folder, capture_output=True, check=True)
    return json.loads((folder / "report.json").read_bytes())["run"]["id"], folder


@_either_way
@pytest.mark.parametrize(
    "after_s", [0.4, *(pytest.param(after_s, marks=pytest.mark.attack) for after_s in (0.1, 0.8, 1.2))]
)
def test_what_if_ends_at_once(recorded, start, monkeypatch, after_s, to_all, again):
    run, folder = recorded
    state = next(Path(os.environ["XDG_STATE_HOME"]).glob(f"unstall/{folder.name}-*"))
    monkeypatch.setenv("UNSTALL_STATE", str(state))
    terminal = start("what-if", run)
    time.sleep(after_s)
    waited_s = terminal.interrupt(to_all=to_all, again=again)
    if terminal.process.wait() != 0:  # it had not ended before
        assert_interrupted(terminal, waited_s, run)
