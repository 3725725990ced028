"""``unstall report``: a run that is kept as HTML, Markdown or JSON."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from unstall.cli import options
from unstall.cli.exits import Exit, warn
from unstall.cli.outputs import STDOUT, Outputs, show
from unstall.runs.errors import Refused


@options.command(
    "report",
    short_help="Write the report of a recorded run.",
    epilog=f"{options.RUN} A GPU trace works too.",
)
@click.argument("run", metavar="[RUN]", default="last")
@options.outputs(html=True)
@click.option("--open", "open_", is_flag=True, help="Open the page in the browser.")
def verb(run: str, outputs: Outputs, open_: bool) -> int:
    """Write the report of a recorded run, the last one by default; without an option, show it here."""
    from unstall.report import report_view
    from unstall.runs import archives

    archive = archives.load_report(run)
    if open_ and outputs.html in (None, STDOUT):
        outputs = Outputs(outputs.json, outputs.markdown, Path(f"unstall-{_file_name(archive.report.run.id)}.html"))
    with _refused_if_damaged(run):
        if not outputs:
            show(report_view, archive.report)
            return Exit.OK
        written = outputs.write(report_view, archive.report, archive=archive)
    if not written:
        return Exit.REFUSED
    for path in outputs.files:
        click.echo(f"wrote {path}", err=True)
    if open_ and outputs.html is not None:
        _open(outputs.html)
    return Exit.OK


@contextlib.contextmanager
def _refused_if_damaged(run: str) -> Iterator[None]:
    """Turns an error of a view into one line: a recording from elsewhere may hold anything that its types allow."""
    from jinja2 import TemplateError

    try:
        yield
    except (ArithmeticError, LookupError, TemplateError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise Refused(f"{run} is damaged and cannot be shown ({reason})") from error


def _open(path: Path) -> None:
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        warn(f"no browser was found here; the page is {path}")


def _file_name(run_id: str) -> str:
    """A run's id as part of a path: the id in a stranger's recording may be anything."""
    return "".join(character if character.isalnum() or character == "-" else "_" for character in run_id)[:60]
