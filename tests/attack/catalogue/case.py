"""What a case is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """A program, and how it is started: without unstall and with it everything of it has to be the same."""

    name: str
    source: str
    words: tuple[str, ...] = ()
    """Arguments of the program."""
    options: tuple[str, ...] = ()
    """Options of the interpreter."""
    shell: str = ""
    """Redirections, as a shell writes them."""
    stdin: bytes | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """What lies in its folder before it starts, years old."""
    needs: tuple[str, ...] = ()
    """Modules without which the case cannot run."""
    noticed: str = ""
    """By what it sees that it is watched, where that is among the exceptions in docs/how-it-works.md: their name."""
    heavy: bool = False
    """Whether it imports torch or the like: `make attack` only."""

    def __str__(self) -> str:
        return self.name


def programs(prefix: str, sources: Mapping[str, str], **common) -> list[Case]:
    """A case for each source, by its name."""
    return [Case(f"{prefix}: {name}", source, **common) for name, source in sources.items()]
