"""The ``unstall`` command: a lazy group of verbs, one file each."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any, NoReturn

import click

import unstall
from unstall.cli.exits import Exit, warn
from unstall.cli.signals import ending_at_once
from unstall.runs.errors import Failed, Interrupted, Refused

VERBS = (
    "run", "simplify", "data", "what-if", "optimize", "prove", "trace",
    "history", "compare", "gate", "next",
    "report", "watch", "attach", "export", "prune", "doctor",
    "mcp", "setup-agent",
)  # fmt: skip
"""The verbs in the order of the help: the steps of the work, then the rest. Each is ``verb`` of a module here."""


class LazyGroup(click.Group):
    """A group that imports a verb's module when it is needed, as click's documentation describes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        with ending_at_once():
            command: click.Command = importlib.import_module(f"unstall.cli.{cmd_name.replace('-', '_')}").verb
        return command

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Read the options; Ctrl-C ends that as it ends all else."""
        with _ending():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; what ends it becomes a line and an exit code."""
        with _ending():
            ctx.exit(super().invoke(ctx) or Exit.OK)


@contextlib.contextmanager
def _ending() -> Iterator[None]:
    try:
        yield
    except Refused as error:
        _end(error, Exit.REFUSED)
    except Failed as error:
        _end(error, Exit.FAILED)
    except (Interrupted, KeyboardInterrupt, click.Abort) as error:
        _end(error, Exit.INTERRUPTED, "interrupted")


def _end(error: BaseException, code: Exit, prefix: str = "") -> NoReturn:
    warn("; ".join(part for part in (prefix, str(error)) if part))
    raise click.exceptions.Exit(code) from error


@click.group(cls=LazyGroup, context_settings={"max_content_width": 80, "help_option_names": ["--help", "-h"]})
@click.version_option(unstall.__version__, "--version", prog_name="unstall", message="%(prog)s %(version)s")
def app() -> None:
    """Find what stalls a machine-learning program, where in its code, and how much faster it could be."""


def main() -> None:
    """Entry point of the command."""
    app(prog_name="unstall")
