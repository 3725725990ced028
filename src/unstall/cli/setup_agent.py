"""``unstall setup-agent``: make a coding agent's client use unstall."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unstall.cli import options
from unstall.cli.exits import Exit, needs_extra, warn
from unstall.runs.errors import Refused

if TYPE_CHECKING:
    from unstall.agents.setup import FileChange

CLIENTS = ("claude", "codex", "cursor", "gemini", "vscode")


@options.command("setup-agent", short_help="Make a coding agent use unstall.")
@click.argument("client", type=click.Choice(CLIENTS))
@click.option("--remove", is_flag=True, help="Undo what was written.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def verb(client: str, remove: bool, yes: bool) -> int:
    """Configure a coding agent's client to start `unstall mcp`, and add a page of instructions.

    Writes to the project in the working directory, for codex also to your home. Shows the changes and asks first.
    """
    with needs_extra("mcp"):
        from unstall.agents import setup

    try:
        changes = setup.changes(setup.CLIENTS[client], Path.cwd(), remove=remove)
    except setup.NotUnderstood as error:
        raise Refused(str(error)) from error
    if not changes:
        warn("there is nothing to take back" if remove else f"{client} is set up already")
        return Exit.OK
    for change in changes:
        click.echo(change.diff())
    if yes or click.confirm("make these changes?", err=True):
        _make(changes)
    return Exit.OK


def _make(changes: list[FileChange]) -> None:
    for change in changes:
        try:
            change.make()
        except OSError as error:
            raise Refused(f"cannot change {change.path}: {error.strerror}") from error
        warn(f"{'removed' if change.new is None else 'wrote'} {change.path}")
    if shutil.which("unstall") is None:
        warn("the command unstall is not on your PATH: start the client where it is, as in an activated environment")
