"""``unstall data``: measure a program's data pipeline alone, beside what a recorded run says of its model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from unstall.benchmark import archive, command, rundir
from unstall.data.conclude import conclude, model_rate
from unstall.data.examine import DataError, examine
from unstall.runs.errors import Refused, refusing
from unstall.runs.workplace import SandboxChoice, cannot_start, make_directory, open_sandbox

if TYPE_CHECKING:
    from unstall.benchmark.session import Session
    from unstall.records.archive import Archive
    from unstall.records.what_if import DataReport
    from unstall.report.progress import Progress

_MIN_BUDGET_S = 3.0


def measure(
    words: Sequence[str], *, loader: int, run: str | None, budget_s: float, sandbox: SandboxChoice, progress: Progress
) -> DataReport:
    """Measure the DataLoader number ``loader`` that the program iterates.

    ``run`` knows the model's pace; the last run of the same command, if not given. Measuring takes about ``budget_s``.

    Raises:
        Refused: nothing could be measured; the message says why.
    """
    if budget_s < _MIN_BUDGET_S:
        raise Refused(f"--budget: {_MIN_BUDGET_S:g} seconds are needed at least to measure anything")
    with refusing(command.CommandError, archive.ArchiveError):
        line = command.resolve(words)
        recorded = archive.load(run) if run is not None else _last_run_of(words)
    directory = make_directory()
    began = time.monotonic()

    def show(session: Session) -> None:
        progress.update(f"measuring the data pipeline, {time.monotonic() - began:.0f} s", session.steps, session.rate)

    try:
        with refusing(DataError), open_sandbox(sandbox, directory.path, progress.log) as box:
            facts = examine(
                box.command(line),
                directory.path,
                budget_s=budget_s,
                loader=loader,
                environ=box.environment,
                entrance=box.entrance,
                on_poll=show,
            )
    except OSError as error:
        raise cannot_start(line, error) from error
    finally:
        directory.discard_recordings()
    return conclude(list(words), facts, model_items_per_s=model_rate(recorded))


def _last_run_of(words: Sequence[str]) -> Archive | None:
    """The last run of the same command that is kept here, if there is one."""
    for path in reversed(rundir.list_runs(finished=True)):
        try:
            recorded = archive.load(str(path))
        except archive.ArchiveError:
            continue
        if recorded.report.run.command == list(words) and recorded.measurement is not None:
            return recorded
    return None
