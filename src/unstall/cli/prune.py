"""`unstall prune`: bound the space that recordings take."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import typer

from unstall.benchmark import rundir
from unstall.cli import amounts
from unstall.repeat import pruning
from unstall.text import units


def prune(
    keep: int | None = typer.Option(None, "--keep", min=0, help="Keep only the newest so many runs."),
    older_than: str | None = typer.Option(None, "--older-than", help="Remove runs older than this, e.g. 30d."),
    max_size: str | None = typer.Option(None, "--max-size", help="Keep the newest that fit; 1GB if nothing is given."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would be removed."),
) -> None:
    """Remove old recordings. The history keeps its line for each run; compare and reports need the recording."""
    if keep is None and older_than is None and max_size is None:
        max_size = "1GB"
    runs = pruning.kept_runs(rundir.home())
    removed = pruning.choose(
        runs,
        keep=keep,
        older_than_s=amounts.seconds(older_than) if older_than else None,
        max_bytes=amounts.size(max_size) if max_size else None,
    )
    gone = [run for run in removed if dry_run or _remove(run.path)]
    verb = "would remove" if dry_run else "removed"
    freed = sum(run.bytes for run in gone)
    left = sum(run.bytes for run in runs) - freed
    typer.echo(
        f"{verb} {len(gone)} of {len(runs)} recordings, {units.bytes_(freed)}; "
        f"{units.bytes_(left)} {'would be left' if dry_run else 'left'}"
    )
    if len(gone) < len(removed):
        raise typer.Exit(1)


def _remove(path: Path) -> bool:
    try:
        shutil.rmtree(path)
    except OSError as error:
        print(f"unstall: {path} was not removed: {error.strerror or error}", file=sys.stderr)
        return False
    return True
