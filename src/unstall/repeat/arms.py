"""One run of one side of a gate: start the program, measure its steps, throw the rest away."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unstall.benchmark import command, launcher
from unstall.benchmark.launcher import ProgramExit
from unstall.benchmark.measure import measure
from unstall.benchmark.reader import read_all
from unstall.benchmark.session import Session
from unstall.records.measurements import Measurement
from unstall.records.vocabulary import PhaseName
from unstall.repeat.thresholds import FEWEST_STEPS, KILL_AFTER_S, MOST_STEPS, WANTED_ERROR
from unstall.sandbox import Sandbox
from unstall.statistics import autocorrelation

_TAIL_LINES = 5


class ArmError(Exception):
    """A run that gave nothing to compare; the message says which one, why, and what the program wrote last."""


@dataclass(frozen=True)
class Arm:
    """One side: what to start, where, and with what environment."""

    name: str
    words: Sequence[str]
    folder: Path
    environ: Callable[[dict[str, str]], dict[str, str]] = dict


@dataclass(frozen=True)
class ArmRun:
    """One run of an arm. Seconds are a step's."""

    step_s: float
    steps: int
    phases: Mapping[PhaseName, float]
    other_cores: float
    """Cores that other processes used, on average."""
    cores: float
    error: float
    """Relative standard error of ``step_s``."""
    measurement: Measurement | None = None
    """What was measured, for its settings."""


def run(arm: Arm, sandbox: Sandbox, directory: Path, *, steps: int, limit_s: float) -> ArmRun:
    """Run an arm until it has taken ``steps`` measured steps or ends by itself.

    ``directory`` is made for the recording, and removed. Raises :class:`ArmError` when no step could be measured, when
    the program fails, or after ``limit_s`` seconds.
    """
    directory.mkdir()
    try:
        output = directory / "output.txt"
        options = launcher.RecordingOptions(
            steps=steps,
            sampling=False,
            flops=False,
            probing=False,
            output=output,
            environ=lambda env: sandbox.environment(arm.environ(env)),
            entrance=sandbox.entrance,
        )
        with _working_in(arm.folder):
            line = sandbox.command(command.resolve(arm.words))
            outcome = launcher.launch_trial(line, directory, options, _Limit(limit_s))
        if outcome.status and not outcome.observation.stopped:
            raise ArmError(f"the {arm.name} {_ending(outcome, limit_s)}{_tail(output)}")
        return _measured(arm, directory, outcome, steps, output)
    except OSError as error:
        raise ArmError(f"the {arm.name} cannot be run: {error.strerror or error}") from error
    except command.CommandError as error:
        raise ArmError(f"the {arm.name} cannot be run: {error}") from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _measured(arm: Arm, directory: Path, outcome: ProgramExit, steps: int, output: Path) -> ArmRun:
    measured = measure(read_all(directory), outcome.observation, wanted=steps)
    if measured is None:
        raise ArmError(f"the {arm.name} took no steps that could be measured{_tail(output)}")
    measurement = measured.measurement
    durations = measured.loop.durations[measured.chosen]
    return ArmRun(
        step_s=float(durations.mean()),
        error=relative_error(durations),
        steps=measurement.steps,
        phases={phase.name: phase.mean_s for phase in measurement.phases},
        other_cores=measurement.other_cores,
        cores=measurement.cores,
        measurement=measurement,
    )


def steps_for(pilot: ArmRun) -> int:
    """How many steps a run needs for its mean to be known well enough; beyond, the noise between runs is larger."""
    steps = pilot.steps * (pilot.error / WANTED_ERROR) ** 2
    return int(min(max(steps, FEWEST_STEPS), MOST_STEPS))


def relative_error(durations: np.ndarray) -> float:
    """Standard error of the mean over the mean, for steps that are alike to those before them.

    Of an AR(1) series of coefficient φ, σ·√((1+φ)/((1-φ)n)); φ is the first autocorrelation, its bias for short series
    of about (1+4φ)/n made up for (Marriott and Pope, Biometrika 41, 1954).
    """
    n = len(durations)
    if n < 3 or durations.std() == 0:
        return 0.0
    phi = autocorrelation(durations)
    phi = min(max(phi + (1 + 4 * phi) / n, 0.0), 0.95)
    return float(durations.std(ddof=1) / durations.mean()) * math.sqrt((1 + phi) / ((1 - phi) * n))


class _Limit:
    """Ends a program that takes too long."""

    def __init__(self, seconds: float):
        self._deadline = time.monotonic() + seconds

    def __call__(self, session: Session) -> None:
        overdue_s = time.monotonic() - self._deadline
        if overdue_s > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(session.pid, signal.SIGKILL if overdue_s > KILL_AFTER_S else signal.SIGTERM)


@contextlib.contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    """Change the working directory, which the program inherits."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _ending(outcome: ProgramExit, limit_s: float) -> str:
    if outcome.observation.ended - outcome.observation.began >= limit_s:
        return f"was ended after {limit_s:.0f} s: ask for fewer --steps"
    if outcome.status < 0:
        return f"was ended by signal {-outcome.status}"
    return f"ended with exit code {outcome.status}"


def _tail(output: Path) -> str:
    """The last lines of the program's output, each on a line of its own."""
    try:
        lines = output.read_text(errors="replace").rstrip().splitlines()[-_TAIL_LINES:]
    except OSError:
        return ""
    return "".join(f"\n  | {line}" for line in lines)
