"""How a verb that works for minutes is ended."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

from unstall.cli.entry import INTERRUPTED


@contextlib.contextmanager
def ending_at_once() -> Iterator[None]:
    """For imports, while there is nothing to be put in order: Ctrl-C ends this process without an exception.

    Libraries catch all that is raised while they look for each other.
    """
    before = signal.getsignal(signal.SIGINT)
    if callable(before):
        signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        if callable(before):
            signal.signal(signal.SIGINT, before)


def _end(number: int, frame: object) -> None:
    os.write(2, b"unstall: interrupted\n")
    os._exit(INTERRUPTED)


def interrupt_on_sigterm() -> None:
    """Take SIGTERM, of a job that is cancelled, as Ctrl-C: what was begun is put in order."""
    handler = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGTERM, handler if callable(handler) else signal.default_int_handler)
