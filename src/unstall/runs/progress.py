"""How a command says what it is doing."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Where a command's progress is shown."""

    def update(self, phase: str, steps: int = 0, rate: float | None = None) -> None:
        """What is going on now, the steps so far and their rate a second."""

    def log(self, line: str) -> None:
        """A line that stays."""
