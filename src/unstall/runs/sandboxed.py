"""The sandbox as every command that experiments opens it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unstall.runs.errors import refusing

if TYPE_CHECKING:
    from unstall.sandbox import Sandbox


@dataclass(frozen=True)
class SandboxChoice:
    """What the user allows."""

    required: bool = True
    """Whether to refuse where nothing can guarantee that files stay as they are."""
    network_writes: bool = False
    """Whether programs may send to the network."""


@contextlib.contextmanager
def opened(choice: SandboxChoice, recordings: Path, tell: Callable[[str], None]) -> Iterator[Sandbox]:
    """A sandbox over the working directory; ``recordings`` stays writable for real.

    ``tell`` takes a line on what the person should know before a program starts.

    Raises Refused where it cannot be had, or its programs cannot be kept in it.
    """
    from unstall.sandbox import SandboxError, open_sandbox

    with refusing(SandboxError):
        with open_sandbox(
            Path.cwd(), [recordings], network_writes=choice.network_writes, required=choice.required, tell=tell
        ) as sandbox:
            yield sandbox
