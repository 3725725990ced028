"""What the command does before it imports anything: nothing of the user's is imported here, no stream is another's."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point of the command."""
    _search_users_folders_last()
    _open_closed_streams()
    try:
        from unstall.cli import main

        main.main()
    except KeyboardInterrupt:  # while it imports
        os.write(2, b"unstall: interrupted\n")
        os._exit(130)


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
