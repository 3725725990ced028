"""The first run: the program as it is, recorded and sampled as by ``unstall run``, until that is enough to go on."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from unstall.benchmark.launcher import Options, Program
from unstall.benchmark.measure import Measured
from unstall.benchmark.rundir import RunDir
from unstall.diagnose.run_report import make_report
from unstall.records.observations import Observation
from unstall.records.report import Report
from unstall.simplify import thresholds

if TYPE_CHECKING:
    from unstall.benchmark.session import Session
    from unstall.sandbox import Sandbox
    from unstall.simplify.controlled_process import Wait

_POLL_S = 0.1


@dataclass(frozen=True)
class FirstRun:
    """What was seen of the program before any experiment."""

    report: Report
    """The report as ``unstall run`` would give it."""
    measured: Measured | None
    """What the report rests on; None where no loop was seen."""
    observation: Observation
    """The run from outside, to be kept."""
    output: Path
    """What the program wrote."""


def watch(line: list[str], words: list[str], directory: RunDir, sandbox: Sandbox, wait: Wait) -> FirstRun:
    """Run the program and report on it; the recordings are in a folder of their own beneath the run's."""
    folder = directory.path / "observed"
    folder.mkdir()
    started = datetime.now(timezone.utc)
    output = folder / "output.txt"
    options = Options(environ=sandbox.environment, output=output)
    program = Program(sandbox.command(line), folder, options)
    loop_began: float | None = None
    try:
        while program.poll():
            session = program.session
            if session.steps and loop_began is None:
                loop_began = time.monotonic()
            if loop_began is not None and _is_enough(session, time.monotonic() - loop_began):
                session.stop()
            wait(_POLL_S)
    except BaseException:
        program.abandon()
        raise
    outcome = program.finish()
    found = make_report(words, RunDir(directory.id, folder, directory.note), started, outcome)
    return FirstRun(found.report, found.measured, outcome.observation, output)


def _is_enough(session: Session, seconds: float) -> bool:
    steps = session.clean_steps
    few = steps < thresholds.LEAST_WATCHED_STEPS
    if seconds > thresholds.LONGEST_WATCH_S and not few:
        return True
    sampled = session.sampler is None or session.sampler.enough(thresholds.WATCHED_SAMPLES)
    return sampled and (steps >= 4 * thresholds.WATCHED_STEPS or (seconds > thresholds.WATCHED_S and not few))
