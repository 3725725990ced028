"""The `unstall` command: one file a verb, this one joins them."""

from __future__ import annotations

import typer

import unstall
from unstall.cli.run import run

app = typer.Typer(
    name="unstall",
    help="Find what stalls a machine-learning program, where in its code, and how much faster it could get.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(
    "run",
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True},
    no_args_is_help=False,
)(run)


@app.command("doctor")
def _doctor(
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of tables."),
    quick: bool = typer.Option(False, "--quick", help="Spend less time on the ceilings; they may be low."),
) -> None:
    """Tell what can be measured here, and measure this machine's own ceilings."""
    from unstall.cli.doctor import doctor  # what it needs would delay every `unstall run`

    doctor(as_json, quick)


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
