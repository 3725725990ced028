"""How a verb ends early: one line that says what is wrong and what to do about it, and the exit code for bad input."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn, TextIO

import typer

EXIT_USAGE = 2


def fail(message: str) -> NoReturn:
    """Say what is wrong, and end."""
    print(f"unstall: {message}", file=sys.stderr)
    raise typer.Exit(EXIT_USAGE)


def tidy_up_when_ended() -> None:
    """SIGTERM, of a job that is cancelled, is taken as Ctrl-C: what was begun is put in order."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@contextlib.contextmanager
def whoever_reads(stream: TextIO) -> Iterator[None]:
    """A reader who is gone, as of ``| head``, is no failure: the rest is done all the same, and told to nobody.

    rich answers with SystemExit to a pipe that nobody reads.
    """
    try:
        yield
        stream.flush()
    except (BrokenPipeError, SystemExit):
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


def write(path: Path, content: bytes) -> None:
    """Write a file that was asked for, or end."""
    try:
        path.write_bytes(content)
    except OSError as error:
        fail(f"cannot write {path}: {error.strerror}")


def need_folders(*paths: Path | None) -> None:
    """End before any work is done if the folder of a file that is to be written is not there."""
    for path in paths:
        if path is not None and not path.absolute().parent.is_dir():
            fail(f"cannot write {path}: no folder {path.absolute().parent}")
