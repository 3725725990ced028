"""How a verb that works for minutes is ended."""

from __future__ import annotations

import signal


def interrupt_on_sigterm() -> None:
    """Take SIGTERM, of a job that is cancelled, as Ctrl-C: what was begun is put in order."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
