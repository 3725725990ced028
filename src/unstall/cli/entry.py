"""What the command does before it imports anything: nothing of the user's is imported here, no stream is another's."""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 130
_MOMENT_S = 2.0


def main() -> None:
    """Entry point of the command."""
    _search_users_folders_last()
    _open_closed_streams()
    interrupt = Interrupt()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        from unstall.cli import main

        main.main()
    except SystemExit as ending:
        interrupt.leave(ending.code)
        raise
    except KeyboardInterrupt:  # while it imports
        os.write(2, b"unstall: interrupted\n")
        os._exit(INTERRUPTED)


class Interrupt:
    """What Ctrl-C does: the first one raises KeyboardInterrupt, as Python's own handler does.

    While that puts things in order, others must not disturb it. But they end what takes longer than a moment: the next
    start cleans up then.
    """

    def __init__(self) -> None:
        self._first: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        now = time.monotonic()
        if self._first is None:
            self._first = now
            raise KeyboardInterrupt
        if now - self._first > _MOMENT_S:
            os._exit(INTERRUPTED)

    def leave(self, code: object) -> None:
        """After a Ctrl-C, end here, with this exit code: while Python ends itself, another one would change it.

        So would the first one, where it came while Python ran a string, as dataclasses do in imports. A verb that
        handles signals itself says by its exit code that one came.
        """
        if self._first is not None or code == INTERRUPTED:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except (OSError, ValueError):
                    pass  # nobody reads it any more
            os._exit(code if isinstance(code, int) else 1)


def _search_users_folders_last() -> None:
    """The working directory and PYTHONPATH are for the program: a ``queue.py`` there is not meant for this process."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    try:
        users = {os.getcwd(), *map(os.path.abspath, named)}
        sys.path.sort(key=lambda entry: os.path.abspath(entry) in users)
    except FileNotFoundError:
        pass  # the working directory is gone, and nothing can be in it


def _open_closed_streams() -> None:
    """Of stdin, stdout and stderr, give what is closed to nobody. The program has it closed, as without unstall.

    Any file opened here would take its number; and ``print`` to a stderr that is missing writes to stdout.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)  # it gets the lowest number that is free
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))
