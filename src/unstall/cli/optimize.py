"""``unstall optimize``: try the remedies, keep what is faster and computes the same, hand over a patch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unstall.cli import options
from unstall.cli.amounts import SHARE
from unstall.cli.exits import Exit, needs_extra, warn
from unstall.cli.outputs import STDOUT, Outputs, deliver, html_page, need_folders, write
from unstall.cli.signals import ending_at_once, interrupt_on_sigterm
from unstall.records.archive import Archive
from unstall.report.progress import Progress
from unstall.runs.errors import Interrupted, Refused
from unstall.runs.sandboxed import SandboxChoice

if TYPE_CHECKING:
    from unstall.runs.optimize import Optimized

_WIDTH = 110


@options.program_command("optimize", short_help="Try remedies, prove the results equal, write a patch.")
@options.budget("15m")
@click.option("--worth", type=SHARE, default="5%", help="Stop when no remedy promises more than this.")
@options.file("--patch", help="Write the changes as a patch for `git apply`.")
@click.option("--apply", is_flag=True, help="Change the files: asks first, keeps a backup of each.")
@options.file("--remedies", "remedies_file", help="Write run-time remedies, for `unstall run --with`.")
@click.option("--allow-training-change", is_flag=True, help="Also try changes of the training: batch size, precision.")
@options.outputs(html=True)
@options.ledger
@options.sandbox
def verb(
    words: Sequence[str],
    budget: float,
    worth: float,
    patch: Path | None,
    apply: bool,
    remedies_file: Path | None,
    allow_training_change: bool,
    outputs: Outputs,
    ledger: str | None,
    sandbox: SandboxChoice,
) -> int:
    """Find settings and small changes that make a program faster, prove the results equal, write a patch."""
    need_folders(patch, remedies_file)
    with needs_extra("optimize"), ending_at_once():
        from unstall.report import optimize_view
        from unstall.runs import optimize

    interrupt_on_sigterm()
    search = optimize.Options(budget_s=budget, worth=worth, allow_training_change=allow_training_change)
    with Progress() as progress:
        found = optimize.optimize(words, search, sandbox=sandbox, ledger=ledger, progress=progress)
    if found.problem:
        warn(found.problem)
    written = _write(found, patch, remedies_file)
    remarks = [*found.remarks, *_about_patch(found, patch)]
    answer = optimize_view.OptimizeAnswer(found.report, found.interval, remarks)
    code = deliver(
        optimize_view,
        answer,
        outputs,
        record=found.report,
        page=lambda: html_page(Archive(report=found.report)),
        stderr=True,
        width=_WIDTH,
    )
    if found.interrupted:
        raise Interrupted("the report covers what was tried until then")
    if apply and found.changed_files:
        _apply(found)
    return code if written else Exit.REFUSED


def _write(found: Optimized, patch: Path | None, remedies_file: Path | None) -> bool:
    """Write the patch and the remedies; what took a quarter of an hour is not lost where a file cannot be written."""
    written = True
    if patch is not None and found.patch and not write(patch, found.patch):
        warn("the patch is on stdout")
        write(STDOUT, found.patch)
        written = False
    if remedies_file is not None:
        written &= write(remedies_file, found.remedies)
    return written


def _about_patch(found: Optimized, patch: Path | None) -> list[str]:
    """How the changes are had."""
    if patch is not None:
        return [f"git apply {patch}  (from {found.root})" if found.patch else "there is nothing to patch"]
    return ["--patch FILE writes the changes, --apply makes them"] if found.patch else []


def _apply(found: Optimized) -> None:
    """Ask, then change the files."""
    from unstall.runs.optimize import apply

    names = ", ".join(map(str, found.changed_files))
    if not click.confirm(f"change {names}?", err=True):
        return
    try:
        for path, backup in apply(found):
            warn(f"changed {path}; it was kept as {backup.name}")
    except OSError as error:
        raise Refused(f"cannot change {error.filename}: {error.strerror}") from error
