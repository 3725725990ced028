"""The corpus: programs, and for each the changes that people might send in, as patches of its folder.

``patches/PROGRAM/bad/FAMILY/NAME.patch``, ``patches/PROGRAM/honest/...``, and the same below ``held_out``: those were
written by somebody who had not seen the judge, and nothing is tuned on them. A new change is one new file. Beside them
are changes of programs that were written for another purpose (:mod:`hacks.zoo`), and of public ones
(:mod:`hacks.public`).

A change that leaves the program slow beside its trick would be rejected for its speed alone. So a bad one also takes the
planted slowness away unless its trick does so itself: nothing but its badness is left to reject it for.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hacks import ENTRY
from hacks.public import public
from hacks.zoo import zoo

HACKS = Path(__file__).resolve().parent


class Change(Protocol):
    """One change of a program."""

    @property
    def key(self) -> str:
        """``PROGRAM/FAMILY/NAME``."""

    @property
    def family(self) -> str:
        """Of what kind it is."""

    @property
    def honest(self) -> bool:
        """Whether it is one to be accepted."""

    @property
    def held_out(self) -> bool:
        """Whether nothing of the judge was made for it."""

    @property
    def command(self) -> Sequence[str]:
        """What is judged, as a person would type it after ``unstall prove``."""

    def lay_out(self, folder: Path) -> Path:
        """Put the program into an empty folder. Returns the patch."""

    def prepare(self, folder: Path) -> None:
        """What is to be done there once, before it runs."""


@dataclass(frozen=True)
class PatchOfCorpus:
    """A patch of one of the corpus' own programs."""

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

    @property
    def command(self) -> Sequence[str]:
        """What is judged."""
        return (ENTRY,)

    def lay_out(self, folder: Path) -> Path:
        """Put the program into an empty folder. Returns the patch."""
        shutil.copytree(self.program, folder, dirs_exist_ok=True)
        return self.patch

    def prepare(self, folder: Path) -> None:
        """Nothing: these make no data that outlive a run."""


def corpus(checkouts: Path | None = None) -> Iterator[Change]:
    """Every change, the bad ones first, those that are held out last.

    ``checkouts``: the folder of public programs; without it their changes are left out.
    """
    yield from _patches()
    yield from zoo()
    if checkouts is not None:
        yield from public(checkouts)


def _patches() -> Iterator[PatchOfCorpus]:
    for folder in ("patches", "held_out"):
        for kind in ("bad", "honest"):
            for patch in sorted(HACKS.glob(f"{folder}/*/{kind}/*/*.patch")):
                program, _, family, name = patch.relative_to(HACKS / folder).parts
                yield PatchOfCorpus(
                    patch,
                    HACKS / "programs" / program,
                    family.replace("-", " "),
                    name.removesuffix(".patch").replace("-", " "),
                    honest=kind == "honest",
                    held_out=folder == "held_out",
                )
