"""What a proof has found so far, by all of its comparisons."""

from __future__ import annotations

from dataclasses import dataclass, field

from unstall.records.remedies import Sameness

_LEVELS: tuple[Sameness, ...] = ("exact", "close", "reduced")


@dataclass
class Findings:
    """One for each proof, which all that compares in it adds to."""

    known_by: list[str] = field(default_factory=list)
    """What was compared and what could not be, a line each."""
    sameness: Sameness = "exact"
    """How far both sides are the same, by all that was compared."""
    furthest: float = 0.0
    """The largest difference that was taken for rounding, over its limit."""

    def add(self, line: str) -> None:
        """Something more was compared, or could not be."""
        self.known_by.append(line)

    def add_once(self, line: str) -> None:
        """The same of what may be found several times."""
        if line not in self.known_by:
            self.add(line)

    def lower(self, sameness: Sameness) -> None:
        """They are the same no further than this."""
        self.sameness = max(self.sameness, sameness, key=_LEVELS.index)

    def rounded(self, ratio: float) -> None:
        """A difference was taken for rounding. ``ratio``: its size over the limit for that."""
        self.lower("close")
        self.furthest = max(self.furthest, ratio)
