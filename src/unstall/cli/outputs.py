"""Show a verb's answer, and write it to the files that were asked for."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from unstall.cli.exits import Exit, warn
from unstall.records.encoding import indented_json
from unstall.runs.errors import Refused

if TYPE_CHECKING:
    from unstall.records.archive import Archive
    from unstall.report.view import View

A = TypeVar("A")
STDOUT = Path("-")
_C1 = re.compile(rb"\x7f|\xc2[\x80-\x9f]")  # U+007F to U+009F in UTF-8
_WIDTH = 100  # of an output that is no terminal


@dataclass(frozen=True)
class Outputs:
    """Where the answer goes beside the screen; ``-`` is stdout, which then takes nothing else."""

    json: Path | None = None
    markdown: Path | None = None
    html: Path | None = None

    def __post_init__(self) -> None:
        """Raises Refused before any work is done if a file could not be written."""
        need_folders(*self.files)
        if [self.json, self.markdown, self.html].count(STDOUT) > 1:
            raise Refused("only one of --json, --markdown and --html can go to stdout")

    def __bool__(self) -> bool:
        return any((self.json, self.markdown, self.html))

    @property
    def files(self) -> list[Path]:
        """Those that are files."""
        return [path for path in (self.json, self.markdown, self.html) if path not in (None, STDOUT)]

    @property
    def take_stdout(self) -> bool:
        """Whether the answer itself goes to stdout."""
        return STDOUT in (self.json, self.markdown, self.html)

    def write(self, view: View[A], answer: A, *, record: object = None, archive: Archive | None = None) -> bool:
        """Write the files; whether all could be written. The user is told of those that could not.

        Args:
            view: how the answer looks as Markdown.
            answer: what is shown.
            record: what becomes JSON, where that is not the answer itself.
            archive: what the page for a browser is made of, if there is one.
        """
        forms: list[tuple[Path | None, Callable[[], bytes]]] = [
            (self.json, lambda: _json(answer if record is None else record)),
            (self.markdown, lambda: view.markdown(answer).encode()),
        ]
        if archive is not None:
            forms.append((self.html, lambda: _html_page(archive).encode()))
        written = [write(path, make()) for path, make in forms if path is not None]  # all, whichever fails
        return all(written)


def write(path: Path, content: bytes) -> bool:
    """Write a file or stdout; whether that worked. The user is told where it did not."""
    try:
        if path == STDOUT:
            with ignore_broken_pipe(sys.stdout):
                sys.stdout.buffer.write(content if content.endswith(b"\n") else content + b"\n")
        else:
            path.write_bytes(content)
    except OSError as error:
        warn(f"cannot write {path}: {error.strerror}")
        return False
    return True


def show(view: View[A], answer: A, *, stderr: bool = False, width: int = _WIDTH) -> None:
    """Show the answer, fitted to the terminal.

    Args:
        view: how it looks.
        answer: what to show.
        stderr: for verbs that run a program, whose stdout is its own.
        width: of an output that is no terminal.
    """
    from rich.console import Console  # slow to import, and not needed before the user's program has run

    stream = sys.stderr if stderr else sys.stdout
    console = Console(stderr=stderr, width=None if stream.isatty() else width, highlight=False, soft_wrap=False)
    with ignore_broken_pipe(stream):
        view.page(answer, console.width).show(console)


def deliver(
    view: View[A],
    answer: A,
    outputs: Outputs,
    *,
    record: object = None,
    archive: Archive | None = None,
    stderr: bool = False,
    width: int = _WIDTH,
) -> Exit:
    """Write and show an answer; arguments as of :meth:`Outputs.write` and :func:`show`. The exit code of the verb."""
    written = outputs.write(view, answer, record=record, archive=archive)
    if stderr or not outputs.take_stdout:
        show(view, answer, stderr=stderr, width=width)
    return Exit.OK if written else Exit.REFUSED


def _json(record: object) -> bytes:
    """Indented; control characters that JSON allows in a string, and a terminal obeys, are escaped like the others."""
    data = indented_json(record)
    return _C1.sub(lambda match: b"\\u%04x" % ord(match[0].decode()), data)


def _html_page(archive: Archive) -> str:
    """The page of a run, with the source that is blamed, and sliders where the recording gives a model to predict."""
    from unstall.report import html
    from unstall.runs.archives import predictions, with_source

    return html.page(with_source(archive), predictions(archive))


def need_folders(*paths: Path | None) -> None:
    """Raise Refused before any work is done if the folder of a file that is to be written is not there."""
    for path in paths:
        if path is not None and not path.absolute().parent.is_dir():
            raise Refused(f"cannot write {path}: no folder {path.absolute().parent}")


@contextlib.contextmanager
def ignore_broken_pipe(stream: TextIO) -> Iterator[Any]:
    """A reader that is gone, as with ``| head``, is no failure: go on, and write to nowhere.

    rich answers with SystemExit to a pipe that nobody reads.
    """
    try:
        yield
        stream.flush()
    except (BrokenPipeError, SystemExit):
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
