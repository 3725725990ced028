"""``unstall prune``: bound the space that recordings take."""

from __future__ import annotations

import click

from unstall.cli import options
from unstall.cli.exits import Exit, warn
from unstall.cli.parsers import SIZE, TIME
from unstall.text import units


@options.command("prune", short_help="Remove old recordings.")
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Keep the N newest runs.")
@click.option("--older-than", type=TIME, help="Remove runs older than this: 30d.")
@click.option("--max-size", type=SIZE, help="Keep the newest runs that fit (default without other limits: 1GB).")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
def verb(keep: int | None, older_than: float | None, max_size: int | None, dry_run: bool) -> int:
    """Remove old recordings. The history keeps one line per run; `compare` and reports need the recording."""
    from unstall.runs import prune

    pruned = prune.prune(keep=keep, older_than_s=older_than, max_bytes=max_size, dry_run=dry_run)
    for problem in pruned.problems:
        warn(problem)
    removed, remaining = ("would remove", "would be left") if dry_run else ("removed", "left")
    click.echo(
        f"{removed} {pruned.removed} of {pruned.runs} recordings, {units.bytes_(pruned.freed_bytes)}; "
        f"{units.bytes_(pruned.left_bytes)} {remaining}"
    )
    return Exit.FAILED if pruned.problems else Exit.OK
