"""The directory of a run that is about to be recorded."""

from __future__ import annotations

from unstall.benchmark import rundir
from unstall.benchmark.rundir import RunDir
from unstall.runs.errors import Refused


class NoPlace(Refused):
    """No directory takes a recording."""


def make() -> RunDir:
    """A fresh one. Raises NoPlace where neither the working nor the temporary directory takes a file."""
    try:
        return rundir.make()
    except OSError as error:
        where = "neither the working nor the temporary directory takes it"
        raise NoPlace(f"cannot write the recording: {where} ({error.strerror})") from error


def cannot_start(command: list[str], error: OSError) -> Refused:
    """The program could not be started."""
    return Refused(f"{command[0]} cannot be started: {error.strerror}")
