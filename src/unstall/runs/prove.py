"""``unstall prove``: is a change faster, and the same?"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from unstall.benchmark import command, rundir
from unstall.benchmark.environment import environment
from unstall.prove import trees
from unstall.prove.judge import Judge, ProofOptions
from unstall.prove.runner import SandboxedRunner
from unstall.prove.runs import OriginalFailed
from unstall.records.report import Finding, Report
from unstall.records.run import RunInfo, Throughput, Utilization
from unstall.records.vocabulary import NO_VERDICT
from unstall.runs.errors import Failed, Refused, refusing
from unstall.runs.workplace import SandboxChoice, open_sandbox
from unstall.sandbox import leftovers

if TYPE_CHECKING:
    from unstall.records.proof import Proof
    from unstall.report.progress import Progress

__all__ = ["ProofOptions", "ProveRequest", "prove"]

_FOLDER = "unstall-prove-"


@dataclass(frozen=True)
class ProveRequest:
    """What is to be judged."""

    words: Sequence[str]
    """The program, as ``unstall run`` takes it."""
    patch: Path | None = None
    against: str | None = None
    """A revision, ``A..B``, or a folder."""
    sandbox: SandboxChoice = field(default_factory=SandboxChoice)


def prove(request: ProveRequest, options: ProofOptions, progress: Progress) -> Report:
    """Judge a change of the program in the working directory, of which nothing is changed.

    Raises:
        Refused: there is nothing to start or to compare, or no sandbox that can hold changed files.
        Failed: the original cannot be run.
    """
    began, started = monotonic(), datetime.now(timezone.utc)
    with refusing(command.CommandError, trees.TreeError):
        line = command.resolve(request.words)
        sides = sides_of(request)
        leftovers.remove_abandoned([Path(tempfile.gettempdir())], _FOLDER)
        with leftovers.claimed(lambda: Path(tempfile.mkdtemp(prefix=_FOLDER))) as folder:
            slot = folder / "slot"
            slot.mkdir()
            with open_sandbox(request.sandbox, slot, progress.log) as box:
                if box.force != "overlay":
                    raise Refused(f"a change cannot be judged here: {box.note}")
                runner = SandboxedRunner(line, slot, box)
                try:
                    proof = Judge(runner, sides, options, progress.log).prove()
                except OriginalFailed as error:
                    raise Failed(str(error)) from error
                notes = [*(f"refused in the runs: {line}" for line in box.refused()), *box.limits, *box.reached()]
    run = RunInfo(
        id=rundir.new_id(),
        command=list(request.words),
        started=started.isoformat(timespec="seconds"),
        duration_s=monotonic() - began,
        steps=0,
        exit_code=None,
        environment=environment(),
        notes=notes,
    )
    return report_of(proof, run)


def sides_of(request: ProveRequest) -> trees.Sides:
    """The original and the changed program. Raises TreeError, and Refused where it is not said which is meant."""
    if (request.patch is None) == (request.against is None):
        raise Refused("say what to judge: --patch FILE, or --against with a revision, A..B or a folder")
    folder = Path.cwd()
    return trees.of_patch(request.patch, folder) if request.patch else trees.against(str(request.against), folder)


def report_of(proof: Proof, run: RunInfo) -> Report:
    """The report of a proof; nothing stalls in it, as no step was diagnosed."""
    verdict = Finding(
        pattern=NO_VERDICT, headroom=1.0, headroom_known_by="measured", confidence="low", evidence=[], advice=[]
    )
    return Report(
        kind="prove",
        run=run,
        throughput=Throughput(steps_per_s=None),
        utilization=Utilization(),
        phases=[],
        verdict=verdict,
        findings=[verdict],
        proof=proof,
    )
