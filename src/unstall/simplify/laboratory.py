"""A running program whose condition can be switched between steps, and whose step times are read as it runs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from unstall.benchmark.launcher import Options, Program
from unstall.benchmark.reader import read_facts
from unstall.benchmark.resources import other_cores
from unstall.child.recording import steps_of
from unstall.child.watcher import CALL
from unstall.simplify import segment
from unstall.simplify.follower import Follower
from unstall.simplify.segment import Segment
from unstall.simplify.switchboard import Switchboard

if TYPE_CHECKING:
    from unstall.sandbox import Sandbox

ENGINE = "unstall.simplify.engine"
_POLL_S = 0.05
_START_PATIENCE_S = 120.0
_END_PATIENCE_S = 20.0
_PATIENCE_S, _PATIENCE_STEPS = 15.0, 10.0  # for steps: so long, and so many times what they are known to take
_LEARNING_STEPS = 40


class Ended(Exception):
    """The program ended; ``status`` is its exit code or minus the signal, ``words`` the last line it wrote."""

    def __init__(self, status: int, words: str = ""):
        super().__init__(f"the program ended with exit code {status}")
        self.status = status
        self.words = words


class Stuck(Exception):
    """The program runs but makes no steps."""


class Interrupted(Exception):
    """A person, or the system, wants unstall itself to stop."""


Waiter = Callable[[float], None]
"""Sleeps for some seconds, shows progress; raises Interrupted when a signal came."""


class Laboratory:
    """One child under experiment. Use it as a context manager: it is stopped, by unwinding, in the end."""

    def __init__(
        self,
        line: list[str],
        directory: Path,
        sandbox: Sandbox,
        wait: Waiter,
        *,
        kind: str,
        settings: dict[str, Any] | None = None,
    ):
        directory.mkdir()
        self.directory = directory
        self.kind = kind
        self.wait = wait
        self.board = Switchboard(directory, create=True)
        self.output = directory / "output.txt"
        options = Options(
            sampling=False,
            probing=False,
            flops=False,
            extensions=[ENGINE],
            settings=settings or {},
            environ=sandbox.environment,
            output=self.output,
        )
        self.program = Program(sandbox.command(line), directory, options)
        self.session = self.program.session
        self._follower: Follower | None = None
        self._applied = self._from = 0.0
        self._done = False

    def __enter__(self) -> Laboratory:
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()

    @property
    def steps(self) -> int:
        """Steps so far, of the process that drives the loop."""
        main = self.session.main
        return steps_of(main.ticks) if main is not None else 0

    def warm_up(self, steps: int, seconds: float) -> None:
        """Wait until the loop is under way. Raises Ended, or Stuck when no step comes at all."""
        began = time.monotonic()
        self._until(lambda: self.steps > 0, _START_PATIENCE_S, "no step was seen")
        self._until(
            lambda: self.steps >= steps and time.monotonic() - began > seconds, _START_PATIENCE_S, "it makes no steps"
        )
        main = self.session.main
        assert main is not None
        self._follower = Follower(self.directory, main.pid)

    def switch(self, interventions: list[dict[str, Any]], patience: float = 30.0) -> None:
        """Put interventions in force, all others out of it, and wait until the main process has done so."""
        taps = [tap for tap in self.session.taps.values() if steps_of(tap.ticks)]
        condition: dict[str, Any] = {"interventions": interventions}
        if len(taps) > 1:  # ranks wait for each other at collectives: all switch at the same step
            condition["at"] = max(steps_of(tap.ticks) for tap in taps) + 3
        wanted = self.board.write(condition)
        for tap in taps:
            tap.control = CALL
        self._until(lambda: self.board.in_force[0] == wanted, patience, "it makes no steps")
        self._applied = self.board.in_force[1]
        assert self._follower is not None
        self._follower.forget()

    def settle(self, steps: int, seconds: float, step_s: float) -> None:
        """Let steps and seconds pass uncounted, and then steps until stubs have their answers.

        ``step_s`` is about what a step takes.
        """
        self._pass(steps, self._applied + seconds, step_s)
        for _ in range(_LEARNING_STEPS):
            real = self.board.real_calls
            self._pass(1, 0.0, step_s)
            if self.board.real_calls == real:
                break
        self._from = time.monotonic()

    def run(self, steps: int, seconds: float, step_s: float) -> Segment:
        """Measure so many steps at least, for so many seconds at least; the next segment follows on."""
        real = self.board.real_calls
        self._pass(steps + 1, self._from + seconds, step_s)
        assert self._follower is not None
        found = segment.measure(self._follower.since(self._applied), self.kind, self._from)
        if found is None:
            raise Stuck("no step of it was whole")
        self._from = found.ended
        found.real_calls = self.board.real_calls - real
        looks = self.session.resources
        found.other_cores = other_cores(looks.machine, looks.points, found.began, found.ended)
        return found

    def data_alone(self, seconds: float) -> float | None:
        """Batches a second of the main loader when nothing else is done; None when it gave too few.

        What lay ready in the queues of the workers is left out.
        """
        told = len(self.facts("alone"))
        self.switch([{"kind": "alone", "seconds": seconds}])
        try:
            self._until(lambda: len(self.facts("alone")) > told, _PATIENCE_S + 3 * seconds, "the loader gives nothing")
        finally:
            self.switch([])
        arrivals = self.facts("alone")[-1]["arrivals"]
        late = [t for t in arrivals if t > arrivals[0] + seconds / 4]
        return (len(late) - 1) / (late[-1] - late[0]) if len(late) > 2 else None

    def pause(self) -> None:
        """Stop all its processes where they are, so that another child has the machine."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def facts(self, kind: str) -> list[dict[str, Any]]:
        """What its processes told of this kind, in no particular order between processes."""
        told = []
        for path in sorted(self.directory.glob("info-*.jsonl")):
            told += read_facts(path)[1].get(kind, [])
        return told

    def last_words(self) -> str:
        """The last line that the program wrote: of a traceback, the error."""
        try:
            lines = self.output.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1].strip()[:200] if lines else ""

    def end(self) -> None:
        """Let the program unwind; one that refuses is killed."""
        if self._done:
            return
        self._done = True
        self.resume()
        self.session.stop()
        deadline = time.monotonic() + _END_PATIENCE_S
        while self.program.poll():
            if time.monotonic() > deadline or (not self.steps and time.monotonic() > deadline - _END_PATIENCE_S + 2):
                self.program.kill(signal.SIGKILL)
            time.sleep(_POLL_S)
        self.program.finish()

    def _pass(self, steps: int, until: float, step_s: float) -> None:
        """Wait for so many more steps, whole ones, and at least to that time."""
        base = self.steps
        patience = _PATIENCE_S + _PATIENCE_STEPS * step_s * (steps + 1) + max(0.0, until - time.monotonic())
        self._until(lambda: self.steps > base + steps and time.monotonic() >= until, patience, "it makes no steps")

    def _until(self, condition: Callable[[], bool], patience: float, otherwise: str) -> None:
        deadline = time.monotonic() + patience
        while not condition():
            if not self.program.poll():
                assert self.program.status is not None
                raise Ended(self.program.status, self.last_words())
            if time.monotonic() > deadline:
                raise Stuck(otherwise)
            self.wait(_POLL_S)

    def _signal_all(self, number: int) -> None:
        try:
            tree = [psutil.Process(self.program.pid), *psutil.Process(self.program.pid).children(recursive=True)]
        except psutil.Error:
            return
        for process in tree:
            try:
                os.kill(process.pid, number)
            except ProcessLookupError:
                pass
