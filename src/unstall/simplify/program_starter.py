"""Starts the program: once to be watched, then as often as the experiments need it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstall.benchmark.launcher import LaunchedProgram, RecordingOptions
from unstall.benchmark.measure import LoopMeasurement
from unstall.benchmark.rundir import RunDir
from unstall.child.experiments.switchboard import Switchboard
from unstall.diagnose.run_report import make_report
from unstall.records.observations import Observation
from unstall.records.report import Report
from unstall.simplify import ranks, thresholds
from unstall.simplify.controlled_process import ControlledProcess, Wait

if TYPE_CHECKING:
    from unstall.benchmark.session import Session
    from unstall.sandbox import Sandbox

ENGINE = "unstall.child.experiments.engine"
_POLL_S = 0.1
_OUTPUT = "output.txt"


@dataclass(frozen=True)
class FirstRun:
    """What was seen of the program before any experiment."""

    report: Report
    """The report as ``unstall run`` would give it."""
    measured: LoopMeasurement | None
    """What the report rests on; None where no loop was seen."""
    observation: Observation
    """The run from outside, to be kept."""
    output: Path
    """What the program wrote."""


class ProgramStarter:
    """One program in its sandbox. ``line``: what is started; ``words``: what the person wrote."""

    def __init__(self, line: list[str], words: list[str], directory: RunDir, sandbox: Sandbox, wait: Wait):
        self.line, self.words, self.directory, self.sandbox, self.wait = line, words, directory, sandbox, wait
        self.started = 0

    def watch(self) -> FirstRun:
        """The first run, as it is, recorded and sampled as by ``unstall run`` until that is enough to go on.

        OSError when there is nothing to start.
        """
        started = datetime.now(timezone.utc)
        folder, options = self._prepare()
        program = LaunchedProgram(self.sandbox.command(self.line), folder, options)
        try:
            self._wait_until_enough(program)
        except BaseException:
            program.abandon()
            raise
        outcome = program.finish()
        run = make_report(self.words, RunDir(self.directory.id, folder, self.directory.note), started, outcome)
        return FirstRun(run.report, run.measured, outcome.observation, folder / _OUTPUT)

    def refusal(self, settings: dict[str, Any]) -> str | None:
        """Why the program cannot be started with these settings, if so."""
        if "ranks" in settings and ranks.alone(self.line) is None:
            return "only the ranks that torchrun starts, by --nproc-per-node, can be fewer"
        return None

    def start(self, kind: str, settings: dict[str, Any], *, is_second: bool) -> ControlledProcess:
        """A child under experiment; ``kind``: what counts its steps; ``is_second``: another one is running."""
        line = ranks.alone(self.line) if "ranks" in settings else self.line
        assert line is not None
        folder, options = self._prepare(
            sampling=False, probing=False, flops=False, extensions=[ENGINE], settings=settings
        )
        board = Switchboard(folder, create=True)
        command = self.sandbox.command(ranks.at_another_port(line) if is_second else line)
        return ControlledProcess(
            LaunchedProgram(command, folder, options), board, folder / _OUTPUT, self.wait, kind=kind
        )

    def _prepare(self, **options: Any) -> tuple[Path, RecordingOptions]:
        """For another start: a folder of its own beneath the run's, and the options."""
        self.started += 1
        folder = self.directory.path / f"child-{self.started}"
        folder.mkdir()
        options |= {"environ": self.sandbox.environment, "entrance": self.sandbox.entrance}
        return folder, RecordingOptions(output=folder / _OUTPUT, **options)

    def _wait_until_enough(self, program: LaunchedProgram) -> None:
        loop_began: float | None = None
        while program.poll():
            session = program.session
            if session.steps and loop_began is None:
                loop_began = time.monotonic()
            if loop_began is not None and _is_enough(session, time.monotonic() - loop_began):
                session.stop()
            self.wait(_POLL_S)


def _is_enough(session: Session, seconds: float) -> bool:
    """Whether the steps and stack samples of so many seconds of the loop will do."""
    steps = session.clean_steps
    few = steps < thresholds.LEAST_WATCHED_STEPS
    if seconds > thresholds.LONGEST_WATCH_S and not few:
        return True
    sampled = session.sampler is None or session.sampler.enough(thresholds.WATCHED_SAMPLES)
    return sampled and (steps >= 4 * thresholds.WATCHED_STEPS or (seconds > thresholds.WATCHED_S and not few))
