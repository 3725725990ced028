"""`unstall what-if`: what a change would bring, predicted from a recorded run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unstall.cli.ending import fail, write

if TYPE_CHECKING:
    from unstall.model import Changes
    from unstall.records.archive import Archive
    from unstall.records.what_if import WhatIfReport

_WIDTH = 100


def what_if(
    run: str = typer.Argument(..., metavar="RUN", help="A run's id, the beginning of one, `last`, a folder or a file."),
    workers: int | None = typer.Option(None, "--workers", help="Loader workers."),
    prefetch: int | None = typer.Option(None, "--prefetch", help="Batches that each worker may be ahead."),
    threads: int | None = typer.Option(None, "--threads", help="Threads of torch inside an operator."),
    cores: float | None = typer.Option(None, "--cores", help="Cores of the machine."),
    in_order: bool | None = typer.Option(None, "--in-order/--no-in-order", help="Batches in order, or as they come."),
    persistent: bool | None = typer.Option(None, "--persistent/--no-persistent", help="Workers kept between epochs."),
    set_: list[str] = typer.Option(
        [],
        "--set",
        metavar="NAME=CHANGE",
        help="A phase, `data`, `collate`, `io`, or a function: 0.5x, -20%, free, async.",
    ),
    json: Path | None = typer.Option(None, "--json", help="Write the answer as JSON; - for stdout."),
) -> None:
    """Predict what a change would bring, from a recorded run; without one, show which changes would bring most."""
    from unstall import model
    from unstall.benchmark import archive

    try:
        changes = model.parse(
            set_,
            workers=workers,
            prefetch=prefetch,
            threads=threads,
            cores=cores,
            in_order=in_order,
            persistent=persistent,
        )
        report = _answer(archive.load(run), changes)
    except (archive.ArchiveError, model.ChangeError, model.NotRecorded) as error:
        fail(str(error))
    if json is not None and str(json) == "-":
        sys.stdout.write(report.to_json().decode() + "\n")
        return
    _show(report)
    if json is not None:
        write(json, report.to_json())


def _answer(kept: Archive, changes: Changes) -> WhatIfReport:
    from unstall import model
    from unstall.records.what_if import WhatIfReport

    pipeline = model.of_archive(kept)
    asked = changes != model.Changes()
    return WhatIfReport(
        run=kept.report.run.id,
        command=kept.report.run.command,
        recorded_step_s=pipeline.measured_s,
        answers=[model.answer(pipeline, changes)] if asked else model.survey(pipeline),
        elasticities=model.elasticities(pipeline, changes),
        notes=model.assumptions(pipeline, changes),
    )


def _show(report: WhatIfReport) -> None:
    from rich.console import Console

    from unstall.report import what_if_view as view

    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    view.page(report, console.width).show(console)
