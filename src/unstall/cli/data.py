"""``unstall data``: the program's data pipeline alone, stage by stage, without the model."""

from __future__ import annotations

from collections.abc import Sequence

import click

from unstall.cli import options
from unstall.cli.outputs import Outputs, deliver
from unstall.cli.signals import interrupt_on_sigterm
from unstall.report.progress import Progress
from unstall.runs.workplace import SandboxChoice


@options.program_command("data", short_help="Measure the data pipeline alone, without the model.")
@click.option(
    "--loader",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Which DataLoader, in order of iteration.",
)
@click.option("--run", metavar="RUN", help="Recorded run that gives the model's speed (default: the last).")
@options.budget("30s")
@options.outputs()
@options.sandbox
def verb(
    words: Sequence[str], loader: int, run: str | None, budget: float, outputs: Outputs, sandbox: SandboxChoice
) -> int:
    """Measure a program's data pipeline alone: each stage, then the loader with 0, 1, 2, 4 ... workers."""
    from unstall.report import data_view
    from unstall.runs import data

    interrupt_on_sigterm()
    with Progress() as progress:
        report = data.measure(words, loader=loader, run=run, budget_s=budget, sandbox=sandbox, progress=progress)
    return deliver(data_view, report, outputs)
