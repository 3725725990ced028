"""``unstall export``: a recorded run, or a GPU trace, in the formats of other tools."""

from __future__ import annotations

from functools import cache
from typing import Any

import click

from unstall.cli import options
from unstall.cli.exits import Exit, warn
from unstall.exports import Exporter, ExportError, export, exporters
from unstall.runs import archives
from unstall.runs.errors import Refused


@cache
def _options() -> list[click.Parameter]:
    """One option an exporter, then the switches that only one of them knows."""
    targets = [
        click.Option([f"--{name}"], metavar=exporter.metavar, help=exporter.help)
        for name, exporter in exporters().items()
    ]
    flags = [
        click.Option([f"--{flag}"], is_flag=True, help=text)
        for exporter in exporters().values()
        for flag, text in exporter.flags.items()
    ]
    return [*targets, *flags]


class _Command(click.Command):
    """Has an option for each exporter, which are looked for only when the verb is used."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options, those of the exporters before ``--help``."""
        *own, help_option = super().get_params(ctx)
        return [*own, *_options(), help_option]


@options.command("export", cls=_Command, short_help="Export a run or a GPU trace to other tools.", epilog=options.RUN)
@click.argument("run", metavar="[RUN]", default="last")
def verb(run: str, **chosen: Any) -> int:
    """Export a recorded run, the last one by default, or a GPU trace: to files, metrics or experiment trackers."""
    targets = {name: chosen[_parameter(name)] for name in exporters() if chosen[_parameter(name)]}
    if not targets:
        raise Refused("give a target, e.g. --csv steps.csv; see `unstall export --help`")
    source = archives.load_exportable(run)
    flags = {flag for exporter in exporters().values() for flag in exporter.flags if chosen[_parameter(flag)]}
    done = [_export(exporters()[name], source, target, flags) for name, target in targets.items()]
    return Exit.OK if all(done) else Exit.FAILED


def _export(exporter: Exporter, source: Any, target: str, flags: set[str]) -> bool:
    """Export to one target; whether that worked."""
    try:
        export(exporter, source, target, flags & set(exporter.flags))
    except ExportError as error:
        warn(f"{target}: {error}")
        return False
    click.echo(f"exported to {target}")
    return True


def _parameter(name: str) -> str:
    """The keyword argument of an option."""
    return name.replace("-", "_")
