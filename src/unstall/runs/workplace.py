"""Where a command runs programs: the directory of their recording, and the sandbox."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unstall.benchmark import rundir
from unstall.benchmark.rundir import RunDir
from unstall.runs.errors import Refused, refusing

if TYPE_CHECKING:
    from unstall.sandbox import Sandbox


@dataclass(frozen=True)
class SandboxChoice:
    """What the user allows."""

    required: bool = True
    """Whether to refuse where nothing can guarantee that files stay as they are."""
    network_writes: bool = False
    """Whether programs may send to the network."""


class NoPlace(Refused):
    """No directory takes a recording."""


def make_directory() -> RunDir:
    """A fresh directory to record into. Raises NoPlace where not even the temporary one takes a file."""
    try:
        return rundir.make()
    except OSError as error:
        reason = "neither the project's state folder nor the temporary folder can be written to"
        raise NoPlace(f"cannot write the recording: {reason} ({error.strerror})") from error


@contextlib.contextmanager
def open_sandbox(choice: SandboxChoice, recordings: Path, on_message: Callable[[str], None]) -> Iterator[Sandbox]:
    """A sandbox over the working directory; ``recordings`` stays writable for real.

    ``on_message`` takes a line that the person should read before a program starts.

    Raises Refused where it cannot be had, or its programs cannot be kept in it.
    """
    from unstall import sandbox

    with (
        refusing(sandbox.SandboxError),
        sandbox.open_sandbox(
            Path.cwd(),
            [recordings],
            network_writes=choice.network_writes,
            required=choice.required,
            on_message=on_message,
        ) as opened,
    ):
        yield opened


def cannot_start(command: list[str], error: OSError) -> Refused:
    """The program could not be started."""
    return Refused(f"{command[0]} cannot be started: {error.strerror}")
