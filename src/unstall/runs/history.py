"""``unstall history``, ``compare`` and ``next``: what the recorded runs of a project say together."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unstall.benchmark import archive, rundir
from unstall.benchmark.archive import ArchiveError
from unstall.repeat import ledger as ledgers
from unstall.repeat.database import LedgerError
from unstall.runs.errors import Refused, refusing
from unstall.text.sanitize import sanitize_line

if TYPE_CHECKING:
    from unstall.records.comparison import Comparison, Entry, Stopping
    from unstall.records.report import Report

_NOISE_FROM_RUNS = 500


def entries(ledger: str | None, *, everything: bool = False) -> list[Entry]:
    """The runs of this project, or of all projects in the ledger, oldest first. Raises Refused without the ledger."""
    with refusing(LedgerError):
        return ledgers.history(ledger, everything=everything)


def having(runs: Sequence[Entry], words: Sequence[str]) -> list[Entry]:
    """The runs whose command contains all the words."""
    return [run for run in runs if all(word in shlex.join(run.command) for word in words)]


def compare(a: str | None, b: str | None, ledger: str | None) -> tuple[Comparison, str | None]:
    """What changed from run A to run B, and why the ledger's noise is not in it, if it is not.

    Args:
        a: the run, see :func:`unstall.benchmark.rundir.find`; the last but one if neither is given.
        b: the last one if not given.
        ledger: where it is known how much runs of one code differ; a comparison does without if it cannot be read.

    Raises:
        Refused: there are no two different runs to compare.
    """
    from unstall.repeat import noise
    from unstall.repeat.comparison import compare

    with refusing(ArchiveError):
        first, second = (archive.load(name) for name in _two_runs(a, b))
    if first.report.run.id == second.report.run.id:
        raise Refused(
            f"A and B are the same run, {sanitize_line(first.report.run.id)}: name two; see `unstall history`"
        )
    try:
        spread, problem = noise.of_runs(ledgers.history(ledger, most=_NOISE_FROM_RUNS)), None
    except LedgerError as error:
        spread, problem = None, str(error)
    return compare(first, second, spread), problem


def _two_runs(a: str | None, b: str | None) -> tuple[str, str]:
    if a is not None:
        return a, b or "last"
    # A report alone has no steps to compare.
    runs = [run for run in rundir.list_runs(finished=True) if (run / archive.FILE_NAME).exists()]
    if len(runs) < 2:
        raise Refused("there are no two runs to compare here yet; make them with: unstall run train.py")
    return runs[-2].name, runs[-1].name


def judge(
    program: str | None, ledger: str | None, *, price: float | None, hours_per_week: float | None
) -> tuple[Stopping, Report]:
    """Whether a program is fast enough, and the report that says so most surely.

    Raises:
        Refused: nothing is known of such a program, or its recording is gone.
    """
    from unstall.repeat import noise, stopping

    runs = entries(ledger)
    chosen = _of_program(runs, program)
    recording = _recording(stopping.most_telling(chosen), chosen[-1])
    with refusing(ArchiveError):
        report = archive.load(str(recording)).report
    spread = noise.of_runs(runs)
    deviation = spread.deviation if spread else 0.0
    answer = stopping.judge(chosen, report, noise=deviation, price=price, hours_per_week=hours_per_week)
    return answer, report


def _of_program(runs: Sequence[Entry], name: str | None) -> list[Entry]:
    """The runs of one program."""
    programs = list(dict.fromkeys(run.program for run in reversed(runs)))
    meant = [program for program in programs if name in (None, program, Path(program).name)]
    if not programs:
        raise Refused("no runs yet; make one with: unstall run train.py")
    if not meant:
        raise Refused(f"no run of {name} yet; there are runs of {sanitize_line(', '.join(programs[:5]))}")
    return [run for run in runs if run.program == meant[0]]


def _recording(*runs: Entry) -> Path:
    """The directory of the first of these runs whose recording still exists."""
    for run in runs:
        folders = [Path(run.directory), *(path for path in rundir.list_runs(finished=True) if path.name == run.id)]
        if folder := next(filter(Path.is_dir, folders), None):  # the state may have been moved since
            return folder
    elsewhere = runs[-1].host != platform.node()
    location = f"is on {sanitize_line(runs[-1].host)}" if elsewhere else "was removed"
    raise Refused(f"the recording of the last run {location}; run the program again: unstall run ...")
