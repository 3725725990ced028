"""How a verb that works for minutes is ended."""

from __future__ import annotations

import signal


def interrupt_on_sigterm() -> None:
    """Take SIGTERM, of a job that is cancelled, as Ctrl-C: what was begun is put in order."""
    handler = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGTERM, handler if callable(handler) else signal.default_int_handler)
