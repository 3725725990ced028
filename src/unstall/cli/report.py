"""`unstall report`: write a run that is kept as HTML, Markdown or JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unstall.cli.ending import fail

if TYPE_CHECKING:
    from unstall.records.archive import Archive


def report(
    run: str = typer.Argument(
        "last",
        metavar="[RUN]",
        help="A run's id, the beginning of one, `last`, or the path of a run, a report or a GPU trace.",
    ),
    html: Path | None = typer.Option(None, "--html", help="One self-contained page, for any browser."),
    markdown: Path | None = typer.Option(None, "--md", "--markdown", help="Markdown, for a pull request."),
    json: Path | None = typer.Option(None, "--json", help="JSON (schema unstall/2)."),
    show: bool = typer.Option(False, "--open", help="Open the page in the browser."),
) -> None:
    """Write the report of a run that is kept; without an option, show it here."""
    archive = _load(run)
    if show and html is None:
        html = Path(f"unstall-{_file_name(archive.report.run.id)}.html")
    wanted = list(_writers(archive, html, markdown, json))
    if not wanted:
        _print(archive)
    for path, make in wanted:
        try:
            path.write_text(make(), encoding="utf-8")
        except OSError as error:
            fail(f"cannot write {path}: {error.strerror}")
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # A recording from elsewhere may hold anything that its types allow.
            fail(f"{run} holds something that cannot be shown ({type(error).__name__}: {' '.join(str(error).split())})")
        print(f"wrote {path}", file=sys.stderr)
    if show and html is not None:
        _open(html)


def _load(run: str) -> Archive:
    """A run that is kept, a report, or a GPU trace."""
    from unstall.benchmark.archive import ArchiveError, load

    try:
        return load(run)
    except ArchiveError as error:
        made = _of_trace(Path(run)) if Path(run).is_file() else None
        if made is None:
            fail(str(error))
        return made


def _of_trace(path: Path) -> Archive | None:
    """The report of a GPU trace; None where the file is none."""
    from unstall.diagnose.trace_report import report as diagnose
    from unstall.records.archive import Archive
    from unstall.trace.ranks import Ranks
    from unstall.trace.readers import read
    from unstall.trace.timeline import TraceError

    try:
        return Archive(report=diagnose(Ranks.of(read(path)), [str(path)]))
    except TraceError:
        return None


def _writers(
    archive: Archive, html: Path | None, markdown: Path | None, json: Path | None
) -> Iterator[tuple[Path, Callable[[], str]]]:
    if html is not None:
        yield html, lambda: _page(archive)
    if markdown is not None:
        from unstall.report import markdown as as_markdown

        yield markdown, lambda: as_markdown.render(archive.report)
    if json is not None:
        yield json, lambda: archive.report.to_json().decode()


def _page(archive: Archive) -> str:
    import msgspec

    from unstall.diagnose import source_excerpt
    from unstall.report import html
    from unstall.simplify.sliders import sliders

    excerpts = source_excerpt.of_report(archive.report, archive.excerpts)
    return html.page(msgspec.structs.replace(archive, excerpts=excerpts), sliders(archive))


def _print(archive: Archive) -> None:
    from rich.console import Console

    from unstall.report import terminal

    terminal.render(archive.report, Console(width=None if sys.stdout.isatty() else 100))


def _open(path: Path) -> None:
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        print(f"unstall: no browser was found here; the page is {path}", file=sys.stderr)


def _file_name(run_id: str) -> str:
    """A run's id where it may become part of a path: a recording from elsewhere can call itself anything."""
    return "".join(character if character.isalnum() or character == "-" else "_" for character in run_id)[:60]
