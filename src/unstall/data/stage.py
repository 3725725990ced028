"""What is known of one stage of the data pipeline, and the calls of it that can be made again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Call:
    """One call of a stage, with what is needed to make it again."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass
class Stage:
    """A function as the samples go through it."""

    name: str
    file: str
    line: int
    depth: int
    order: int
    element: bool = False
    """A member of a list of transforms."""
    calls: int = 0
    traced_s: float = 0.0
    """On a core, with the hook in place: too long for a function that calls many others."""
    reads_s: float = 0.0
    """Wall time in calls that wait for a disk, a network or the clock."""
    why_not: str = ""
    """Why it cannot be called again on its own."""
    kept: list[Call] = field(default_factory=list)
    kept_bytes: int = 0
