"""What is known of a program with a planted bottleneck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """One program and its truth.

    ``culprit`` is the deepest function of the program that holds the time (or keeps the memory), as
    ``function`` or ``Class.method``; ``also_*`` are other fair answers. ``launch`` is the launcher in
    front of the script, empty for plain Python. ``free``: the program has a variant of that name, in which the culprit
    takes no time.
    """

    name: str
    script: str
    pattern: str
    cause: str | None = None
    culprit: str | None = None
    also_patterns: tuple[str, ...] = ()
    also_causes: tuple[str, ...] = ()
    also_culprits: tuple[str, ...] = ()
    launch: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    free: bool = False
    steps: int = 0
    """Of the program, which takes ``--steps`` then; 0: it takes ``--seconds``."""


def case(name: str, verdict: str, culprit: str | None = None, **also: Any) -> Case:
    """A case whose script is ``<name>.py``, from a verdict written as ``pattern/cause``."""
    pattern, _, cause = verdict.partition("/")
    return Case(name, f"{name}.py", pattern, cause or None, culprit, **also)


MODULE = "<module>"
TORCHRUN = ("torchrun", "--standalone", "--nproc-per-node", "2")
