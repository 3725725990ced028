"""A running program whose condition can be switched between steps, and whose step times are read as it runs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from unstall.benchmark.launcher import LaunchedProgram
from unstall.benchmark.reader import read_facts
from unstall.benchmark.resources import other_cores
from unstall.child.experiments.interventions.base import Specification
from unstall.child.experiments.switchboard import Switchboard
from unstall.child.recording import steps_of
from unstall.child.watcher import CALL
from unstall.simplify import segment
from unstall.simplify.budget import Clock
from unstall.simplify.follower import RecordingFollower
from unstall.simplify.segment import Segment


class ProgramEnded(Exception):
    """The program ended; ``status`` is its exit code or minus the signal, ``last_line`` the last that it wrote."""

    def __init__(self, status: int, last_line: str = ""):
        super().__init__(f"the program ended with exit code {status}")
        self.status = status
        self.last_line = last_line


class ProgramStuck(Exception):
    """The program runs but makes no steps."""


class StopRequested(Exception):
    """A person, or the system, wants unstall itself to stop."""


Wait = Callable[[float], None]
"""Sleeps for some seconds, shows progress; raises StopRequested when a signal came, then and every time after."""


@dataclass(frozen=True)
class Patience:
    """Seconds after which a program that does not answer is stuck."""

    start_s: float = 120.0
    """Seconds for the first steps."""
    step_s: float = 15.0
    """Seconds for any step, beside ``step_times`` what steps are known to take."""
    step_times: float = 10.0
    end_s: float = 20.0
    """Seconds for the program to unwind, before it is killed."""
    startless_end_s: float = 2.0
    """Seconds to unwind for one that never made a step."""
    poll_s: float = 0.05
    learning_steps: int = 40
    """Steps, uncounted, in which stubs may collect their answers."""


class ControlledProcess:
    """One child under experiment. Use it as a context manager: it is stopped, by unwinding, in the end."""

    def __init__(
        self,
        program: LaunchedProgram,
        board: Switchboard,
        output: Path,
        wait: Wait,
        *,
        kind: str,
        clock: Clock = time.monotonic,
        patience: Patience = Patience(),
        follow: Callable[[Path, int], RecordingFollower] = RecordingFollower,
    ):
        """``kind``: what counts the steps of its loop; ``output``: the file of what it writes."""
        self.program, self.board, self.output, self.wait = program, board, output, wait
        self.directory, self.session = program.directory, program.session
        self.kind, self.clock, self.patience = kind, clock, patience
        self._follow = follow
        self._follower: RecordingFollower | None = None
        self._applied = self._from = 0.0
        self._is_over = False

    def __enter__(self) -> ControlledProcess:
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()

    @property
    def steps(self) -> int:
        """Steps so far, of the process that drives the loop."""
        main = self.session.main
        return steps_of(main.ticks) if main is not None else 0

    @property
    def recording(self) -> Path:
        """The file that its main process records into. AssertionError before its first step."""
        assert self.session.main is not None
        return self.directory / f"rec-{self.session.main.pid}.bin"

    def warm_up(self, steps: int, seconds: float) -> None:
        """Wait until the loop is under way. Raises ProgramEnded, or ProgramStuck when no step comes at all."""
        began = self.clock()
        self._until(lambda: self.steps > 0, self.patience.start_s, "no step was seen")
        self._until(
            lambda: self.steps >= steps and self.clock() - began > seconds, self.patience.start_s, "it makes no steps"
        )
        assert self.session.main is not None
        self._follower = self._follow(self.directory, self.session.main.pid)

    def switch(self, interventions: list[Specification], patience_s: float = 30.0) -> None:
        """Put interventions in force, all others out of it, and wait until the main process has done so."""
        taps = [tap for tap in self.session.taps.values() if steps_of(tap.ticks)]
        condition: dict[str, Any] = {"interventions": interventions}
        if len(taps) > 1:  # ranks wait for each other at collectives: all switch at the same step
            condition["at"] = max(steps_of(tap.ticks) for tap in taps) + 3
        generation = self.board.write(condition)
        for tap in taps:
            tap.control = CALL
        self._until(lambda: self.board.in_force[0] == generation, patience_s, "it makes no steps")
        self._applied = self.board.in_force[1]
        assert self._follower is not None
        self._follower.forget()

    def settle(self, steps: int, seconds: float, step_s: float) -> None:
        """Let steps and seconds pass uncounted, and then steps until stubs have their answers.

        ``step_s`` is about what a step takes.
        """
        self._pass(steps, self._applied + seconds, step_s)
        for _ in range(self.patience.learning_steps):
            real = self.board.real_calls
            self._pass(1, 0.0, step_s)
            if self.board.real_calls == real:
                break
        self._from = self.clock()

    def run(self, steps: int, seconds: float, step_s: float) -> Segment:
        """Measure so many steps at least, for so many seconds at least; the next segment follows on."""
        real = self.board.real_calls
        self._pass(steps + 1, self._from + seconds, step_s)
        assert self._follower is not None
        measured = segment.measure(self._follower.since(self._applied), self.kind, self._from)
        if measured is None:
            raise ProgramStuck("it completed no step")
        self._from = measured.ended
        measured.real_calls = self.board.real_calls - real
        resources = self.session.resources
        measured.other_cores = other_cores(resources.machine, resources.points, measured.began, measured.ended)
        return measured

    def pause(self) -> None:
        """Stop all its processes where they are, so that another child has the machine."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def facts(self, kind: str) -> list[dict[str, Any]]:
        """What its processes emitted of this kind, in no particular order between processes."""
        return [
            fact for path in sorted(self.directory.glob("info-*.jsonl")) for fact in read_facts(path)[1].get(kind, [])
        ]

    def end(self) -> None:
        """Let the program unwind; one that refuses is killed, and so is any when a person does not want to wait."""
        if self._is_over:
            return
        self._is_over = True
        self.resume()
        self.session.stop()
        began = self.clock()
        try:
            while self.program.poll():
                patience_s = self.patience.end_s if self.steps else self.patience.startless_end_s
                if self.clock() - began > patience_s:
                    self.program.kill(signal.SIGKILL)
                self.wait(self.patience.poll_s)
        except StopRequested:  # as every wait from now on says
            self.program.abandon()
        else:
            self.program.finish()

    def _pass(self, steps: int, until: float, step_s: float) -> None:
        """Wait for so many more steps, whole ones, and at least to that time."""
        base = self.steps
        patience_s = self.patience.step_s + self.patience.step_times * step_s * (steps + 1)
        patience_s += max(0.0, until - self.clock())
        self._until(lambda: self.steps > base + steps and self.clock() >= until, patience_s, "it makes no steps")

    def _until(self, condition: Callable[[], bool], patience_s: float, otherwise: str) -> None:
        deadline = self.clock() + patience_s
        while not condition():
            if not self.program.poll():
                assert self.program.status is not None
                raise ProgramEnded(self.program.status, self._last_line())
            if self.clock() > deadline:
                raise ProgramStuck(otherwise)
            self.wait(self.patience.poll_s)

    def _last_line(self) -> str:
        """The last line that the program wrote: of a traceback, the error."""
        try:
            lines = self.output.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1].strip()[:200] if lines else ""

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
