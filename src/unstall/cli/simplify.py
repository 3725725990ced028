"""``unstall simplify``: find each component's ceiling by experiments on throw-away runs."""

from __future__ import annotations

from collections.abc import Sequence

import click

from unstall.cli import options
from unstall.cli.exits import warn
from unstall.cli.outputs import Outputs, deliver
from unstall.report.progress import Progress
from unstall.runs.errors import Interrupted
from unstall.runs.workplace import SandboxChoice


def _kinds() -> list[str]:
    """The kinds of work that can be stubbed as a whole."""
    from unstall.simplify import registry

    return list(registry.components())


@options.program_command("simplify", short_help="Measure how fast the program is without each component.")
@click.option(
    "--stub",
    "stubs",
    multiple=True,
    metavar="NAME",
    cls=options.ListingOption,
    names=_kinds,
    help="Remove a function, or a kind of work: {}.",
)
@click.option(
    "--delay", "delays", multiple=True, metavar="NAME=+20%", help="Slow a function or kind by a share of its own time."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=N",
    help="Change workers, prefetch or threads; ranks=1, keep-memory=1.",
)
@options.budget("5m")
@options.outputs(html=True)
@options.ledger
@options.sandbox
@options.on
def verb(
    words: Sequence[str],
    stubs: Sequence[str],
    delays: Sequence[str],
    settings: Sequence[str],
    budget: float,
    outputs: Outputs,
    ledger: str | None,
    sandbox: SandboxChoice,
    on: str | None,
) -> int:
    """Measure, on throw-away runs, how much faster the program is without each component.

    Picks the experiments itself unless --stub, --delay or --set name them.
    """
    from unstall.report import simplify_view
    from unstall.runs import experiments, simplify

    chosen = experiments.parse(stubs, delays, settings)
    with Progress() as progress:
        result = simplify.simplify(
            words, chosen, budget_s=budget, sandbox=sandbox, ledger=ledger, progress=progress, on=on
        )
    if result.problem:
        warn(result.problem)
    code = deliver(simplify_view, result.report, outputs, archive=result.archive, stderr=True)
    if result.interrupted:
        raise Interrupted("the report covers what was tried until then")
    return code
