"""The corpus: programs, and for each the changes that people might send in, as patches of its folder.

``patches/PROGRAM/bad/FAMILY/NAME.patch``, ``patches/PROGRAM/honest/...``, and the same below ``held_out``: those were
written by somebody who had not seen the judge, and nothing is tuned on them. A new change is one new file.

A change that leaves the program slow beside its trick would be rejected for its speed alone. So a bad one also takes the
planted slowness away unless its trick does so itself: nothing but its badness is left to reject it for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HACKS = Path(__file__).resolve().parent
ENTRY = "train.py"
"""What is run of each program."""


@dataclass(frozen=True)
class Change:
    """One change of a program."""

    patch: Path
    program: Path
    """Its folder."""
    family: str
    name: str
    honest: bool
    held_out: bool

    @property
    def key(self) -> str:
        """``PROGRAM/FAMILY/NAME``."""
        return f"{self.program.name}/{self.family}/{self.name}"


def corpus() -> Iterator[Change]:
    """Every change, the bad ones first, those that are held out last."""
    for folder in ("patches", "held_out"):
        for kind in ("bad", "honest"):
            for patch in sorted(HACKS.glob(f"{folder}/*/{kind}/*/*.patch")):
                program, _, family, name = patch.relative_to(HACKS / folder).parts
                yield Change(
                    patch,
                    HACKS / "programs" / program,
                    family.replace("-", " "),
                    name.removesuffix(".patch").replace("-", " "),
                    honest=kind == "honest",
                    held_out=folder == "held_out",
                )
