"""The first run: the program as it is, recorded and sampled as by ``unstall run``, until that is enough to go on."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from unstall.benchmark.launcher import Options, Outcome, Program
from unstall.benchmark.measure import Measured
from unstall.benchmark.rundir import RunDir
from unstall.diagnose.run_report import make_report
from unstall.records.report import Report
from unstall.simplify.laboratory import Waiter

if TYPE_CHECKING:
    from unstall.benchmark.session import Session
    from unstall.sandbox import Sandbox

_POLL_S = 0.1
_STEPS = 40
_SAMPLES = 300  # of the main thread: shares within a few per cent, which predictions rest on
_SECONDS = 6.0  # of the loop, beyond which fewer steps will do
_LEAST_STEPS = 8
_MOST_SECONDS = 25.0


def observe(
    line: list[str], words: list[str], directory: RunDir, sandbox: Sandbox, wait: Waiter
) -> tuple[Report, Measured | None, Outcome, Path]:
    """Run the program and report on it; the recordings are in a folder of their own beneath the run's.

    Returns the report, what it rests on, how the run went, and the file of what the program wrote.
    """
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
            if loop_began is not None and _enough(session, time.monotonic() - loop_began):
                session.stop()
            wait(_POLL_S)
    except BaseException:
        _abandon(program)
        raise
    outcome = program.finish()
    found = make_report(words, RunDir(directory.id, folder, directory.note), started, outcome)
    return found.report, found.measured, outcome, output


def _enough(session: Session, seconds: float) -> bool:
    steps = session.clean_steps
    if seconds > _MOST_SECONDS and steps >= _LEAST_STEPS:
        return True
    sampled = session.sampler is None or session.sampler.enough(_SAMPLES)
    return (sampled and seconds > _SECONDS and steps >= _LEAST_STEPS) or (sampled and steps >= 4 * _STEPS)


def _abandon(program: Program) -> None:
    import signal

    program.kill(signal.SIGKILL)
    while program.poll():
        time.sleep(0.02)
    program.finish()
