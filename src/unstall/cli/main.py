"""The `unstall` command: one file a verb, this one joins them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import typer
import typer.core
import typer.main

import unstall


class Verb(NamedTuple):
    """Where a verb lives. It is imported only when it is the one that was typed."""

    function: str
    """``module:function`` in ``unstall.cli``."""
    takes_program: bool = False
    """Whether what follows is the user's own command, whose options are not ours."""
    extra: str = ""
    """The extra that holds the libraries it cannot do without."""


VERBS: dict[str, Verb] = {
    "run": Verb("run:run", takes_program=True),
    "simplify": Verb("simplify:simplify", takes_program=True),
    "data": Verb("data:data", takes_program=True),
    "what-if": Verb("what_if:what_if"),
    "optimize": Verb("optimize:optimize", takes_program=True, extra="optimize"),
    "trace": Verb("trace:trace"),
    "history": Verb("history:history"),
    "compare": Verb("compare:compare"),
    "gate": Verb("gate:gate", takes_program=True),
    "next": Verb("next:next_"),
    "report": Verb("report:report"),
    "watch": Verb("watch:watch"),
    "export": Verb("export:export"),
    "prune": Verb("prune:prune"),
    "doctor": Verb("doctor:doctor"),
}
"""In the order of the help: the four steps, then the rest."""


class _Verbs(typer.core.TyperGroup):
    """A group that imports a verb's file when it is needed: each has libraries that would delay the others."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in VERBS:
            return None
        verb = VERBS[cmd_name]
        module, function = verb.function.split(":")
        settings = {"allow_interspersed_args": False, "ignore_unknown_options": True} if verb.takes_program else {}
        one = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        try:
            implementation = getattr(importlib.import_module(f"unstall.cli.{module}"), function)
        except ImportError as error:
            if not verb.extra:
                raise
            implementation = _missing(verb.extra, error)
        one.command(cmd_name, context_settings=settings, no_args_is_help=False)(implementation)
        return typer.main.get_command(one)


def _missing(extra: str, error: ImportError) -> Callable[[list[str]], None]:
    """In place of a verb whose libraries are not installed."""

    def verb(words: list[str] = typer.Argument(None)) -> None:
        typer.echo(f"unstall: {error.name} is not installed: pip install 'unstall[{extra}]'", err=True)
        raise typer.Exit(2)

    verb.__doc__ = f"Needs more libraries: pip install 'unstall[{extra}]'."
    return verb


app = typer.Typer(
    name="unstall",
    help="Find what stalls a machine-learning program, where in its code, and how much faster it could get.",
    cls=_Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unstall {unstall.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Tell the version."),
) -> None:
    pass


def main() -> None:
    """Entry point of the command."""
    app()
