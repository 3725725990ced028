"""Start the program with the measurement in it, and read what it measured of its data pipeline."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstall.benchmark import launcher, reader
from unstall.benchmark.environment import usable_cores
from unstall.benchmark.resources import other_cores
from unstall.data import thresholds

if TYPE_CHECKING:
    from unstall.benchmark.session import Session


class DataError(RuntimeError):
    """Nothing of the data pipeline could be measured; the message says why and what to do."""


@dataclass
class PipelineFacts:
    """What the program measured, as it wrote it down."""

    loader: dict[str, Any] = field(default_factory=dict)
    sample: dict[str, Any] = field(default_factory=dict)
    stages: list[dict[str, Any]] = field(default_factory=list)
    after: dict[str, dict[str, Any]] = field(default_factory=dict)
    """collate, pin and transfer."""
    rates: list[dict[str, Any]] = field(default_factory=list)
    failed: str = ""
    done: bool = False
    other_cores: float = 0.0
    """Cores that other programs took meanwhile, mean."""
    met: int = 0
    """Loaders that the program began to iterate."""


def examine(
    line: list[str],
    directory: Path,
    *,
    budget_s: float = 30.0,
    loader: int = 1,
    environ: Callable[[dict[str, str]], dict[str, str]] | None = None,
    entrance: Sequence[str] = (),
    on_poll: Callable[[Session], None] = lambda session: None,
) -> PipelineFacts:
    """Run a program until its DataLoader number ``loader`` was measured. Raises :class:`DataError`."""
    output = directory / "output.txt"
    options = launcher.RecordingOptions(
        sampling=False,
        flops=False,
        probing=False,
        extensions=["unstall.child.data.extension"],
        settings={"budget_s": budget_s, "cores": usable_cores(), "loader": loader},
        environ=environ,
        entrance=entrance,
        output=output,
    )
    try:
        outcome = launcher.launch_trial(line, directory, options, _Patience(directory, loader, on_poll))
        facts = read_facts(directory)
        observation = outcome.observation
        facts.other_cores = other_cores(observation.machine, observation.points, observation.began, observation.ended)
        if facts.failed:
            raise DataError(facts.failed)
        if not facts.done:
            raise DataError(_why_nothing(facts, outcome, output, wanted=loader))
        return facts
    finally:
        with contextlib.suppress(OSError):
            output.unlink(missing_ok=True)


class _Patience:
    """Stops a program that goes on and on without iterating the loader that is wanted, or after it was measured."""

    def __init__(self, directory: Path, wanted: int, on_poll: Callable[[Session], None]):
        self.directory, self.wanted, self.on_poll = directory, wanted, on_poll
        self.began = self.looked = time.monotonic()

    def __call__(self, session: Session) -> None:
        self.on_poll(session)
        now = time.monotonic()
        if now - self.looked < thresholds.LOOK_EVERY_S:
            return
        self.looked = now
        facts = read_facts(self.directory)
        no_loader = session.steps >= thresholds.STEPS_WITHOUT_LOADER and not facts.met
        too_late = now - self.began > thresholds.LONGEST_S and facts.met < self.wanted
        if facts.done or no_loader or too_late:
            session.stop()


def read_facts(directory: Path) -> PipelineFacts:
    """What the program's processes wrote of the measurement so far."""
    facts = PipelineFacts()
    for path in sorted(directory.glob("info-*.jsonl")):
        _, lines = reader.read_facts(path)
        for error in lines.get("error", ()):
            if str(error.get("what", "")).startswith("extension"):
                facts.failed = f"the measurement could not be put in place: {error.get('error')}"
        for line in lines.get("data", ()):
            _add(facts, line.pop("part", ""), {key: line[key] for key in line if key not in ("kind", "t")})
    return facts


def _add(facts: PipelineFacts, part: str, figures: dict[str, Any]) -> None:
    if part == "loader":
        facts.loader = figures
    elif part == "sample":
        facts.sample = figures
    elif part == "stage":
        facts.stages.append(figures)
    elif part == "workers":
        facts.rates.append(figures)
    elif part == "met":
        facts.met += 1
    elif part == "failed":
        facts.failed = str(figures["why"])
    elif part == "done":
        facts.done = True
    else:
        facts.after[part] = figures


def _why_nothing(facts: PipelineFacts, outcome: launcher.ProgramExit, output: Path, *, wanted: int) -> str:
    if facts.loader or facts.met >= wanted:
        return f"{_ending(outcome)} before its data pipeline was measured{_last_lines(output)}"
    if facts.met:
        return f"the program iterated {facts.met} DataLoader(s), no number {wanted}: choose another with --loader"
    if outcome.observation.stopped:
        return (
            f"no DataLoader was iterated in the first {thresholds.STEPS_WITHOUT_LOADER} steps: data that the program "
            "makes in its own loop cannot be measured here; `unstall run` shows what its steps wait for"
        )
    if outcome.status:
        return f"{_ending(outcome)} before it iterated a DataLoader{_last_lines(output)}"
    return "the program ended without iterating a DataLoader: there is nothing to measure"


def _ending(outcome: launcher.ProgramExit) -> str:
    if outcome.status < 0:
        return f"the program was ended by signal {-outcome.status}"
    return f"the program ended with exit code {outcome.status}"


def _last_lines(output: Path) -> str:
    try:
        lines = output.read_text(errors="replace").strip().splitlines()[-thresholds.LAST_LINES :]
    except OSError:
        lines = []
    return ":\n  " + "\n  ".join(lines) if lines else ""
