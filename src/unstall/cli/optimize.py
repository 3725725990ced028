"""``unstall optimize``: try the remedies, keep what is faster and computes the same, hand over a patch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from unstall.cli import options
from unstall.cli.exits import Exit, needs_extra, warn
from unstall.cli.outputs import STDOUT, Outputs, deliver, need_folders, write
from unstall.cli.parsers import SHARE
from unstall.cli.signals import ending_at_once, interrupt_on_sigterm
from unstall.records.archive import Archive
from unstall.report.progress import Progress
from unstall.runs.errors import Interrupted, Refused
from unstall.runs.workplace import SandboxChoice

if TYPE_CHECKING:
    from unstall.runs.optimize import Optimized

_WIDTH = 110
_QUICK_BUDGET_S = 60.0


@options.program_command("optimize", short_help="Try remedies, prove the results equal, write a patch.")
@options.budget("15m")
@click.option("--quick", is_flag=True, help="Stop with the first change kept; without --budget, after a minute.")
@click.option("--worth", type=SHARE, default="5%", help="Stop when no remedy is predicted to gain this much.")
@options.file("--patch", help="Write the changes as a patch for `git apply`.")
@click.option("--apply", is_flag=True, help="Change the files: asks first, keeps a backup of each.")
@click.option(
    "--package",
    "packages",
    metavar="NAME",
    multiple=True,
    help="Also change this package, installed or next to the program. Repeatable.",
)
@click.option("--agent", metavar="COMMAND", help="Let a command change the sources, too, and judge each change.")
@options.file("--remedies", "remedies_file", help="Write run-time remedies, for `unstall run --with`.")
@click.option(
    "--allow",
    type=click.Choice(["output-changing", "reduced", "training-changing"]),
    multiple=True,
    help="Also keep changes that write less, reduce precision, or alter training. Repeatable.",
)
@options.outputs(html=True)
@options.ledger
@options.sandbox
@options.on
def verb(
    words: Sequence[str],
    budget: float,
    quick: bool,
    worth: float,
    patch: Path | None,
    apply: bool,
    packages: Sequence[str],
    agent: str | None,
    remedies_file: Path | None,
    allow: Sequence[str],
    outputs: Outputs,
    ledger: str | None,
    sandbox: SandboxChoice,
    on: str | None,
) -> int:
    """Search for settings and small changes that make a program faster, check its results, write a patch."""
    need_folders(patch, remedies_file)
    with needs_extra("optimize"), ending_at_once():
        from unstall.report import optimize_view
        from unstall.runs import optimize

    interrupt_on_sigterm()
    if quick and click.get_current_context().get_parameter_source("budget") is ParameterSource.DEFAULT:
        budget = _QUICK_BUDGET_S
    search = optimize.SearchOptions(budget_s=budget, worth=worth, allow=frozenset(allow), quick=quick)
    with Progress() as progress:
        result = optimize.optimize(
            words, search, packages=packages, sandbox=sandbox, ledger=ledger, progress=progress, agent=agent, on=on
        )
    if result.problem:
        warn(result.problem)
    written = _write(result, patch, remedies_file)
    remarks = [*result.remarks, *_about_patch(result, patch)]
    answer = optimize_view.OptimizeResult(result.report, remarks)
    code = deliver(
        optimize_view,
        answer,
        outputs,
        record=result.report,
        archive=Archive(report=result.report),
        stderr=True,
        width=_WIDTH,
    )
    if result.interrupted:
        raise Interrupted("the report covers what was tried until then")
    if apply and result.changed_files:
        _apply(result)
    return code if written else Exit.REFUSED


def _write(result: Optimized, patch: Path | None, remedies_file: Path | None) -> bool:
    """Write the patch and the remedies; where the patch cannot be written, it goes to stdout."""
    written = True
    if patch is not None and result.patch and not write(patch, result.patch):
        warn("the patch is on stdout")
        write(STDOUT, result.patch)
        written = False
    if remedies_file is not None:
        written &= write(remedies_file, result.remedies)
    return written


def _about_patch(result: Optimized, patch: Path | None) -> list[str]:
    """How to get the changes."""
    if patch is not None:
        return [f"git apply {patch}  (from {result.root})" if result.patch else "there is nothing to patch"]
    return ["--patch FILE writes the changes, --apply makes them"] if result.patch else []


def _apply(result: Optimized) -> None:
    """Ask, then change the files."""
    from unstall.runs.optimize import apply

    names = ", ".join(map(str, result.changed_files))
    if not click.confirm(f"change {names}?", err=True):
        return
    try:
        for path, backup in apply(result):
            warn(f"changed {path}; the original is kept as {backup.name}" if backup else f"wrote {path}")
    except OSError as error:
        raise Refused(f"cannot change {error.filename}: {error.strerror}") from error
