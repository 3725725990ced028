"""What keeps growing in the program, by its own looks at itself: the lines that make it grow, and what ends it."""

from __future__ import annotations

from typing import NamedTuple

from unstall.diagnose import source
from unstall.diagnose.growth_bound import bound_of
from unstall.diagnose.growth_site import locate, names_in
from unstall.records.measurements import GrowingObject, MemoryMeasurement
from unstall.records.report import Culprit


class Keeper(NamedTuple):
    """Something that grows, and the line of the user's that makes it grow."""

    kept: GrowingObject
    culprit: Culprit | None
    bound: str
    """The condition in the source by which it ends growing; empty where there is none."""


class Keepers(NamedTuple):
    """What grows without an end, and what grows until a capacity that the source gives it; the most bytes first."""

    endless: Keeper | None
    bounded: list[Keeper]

    @property
    def bounded_bytes_per_step(self) -> float:
        """Of all that has a bound."""
        return sum(keeper.kept.bytes_per_step for keeper in self.bounded)


def keepers(memory: MemoryMeasurement) -> Keepers:
    """Look up in the source what was seen to grow.

    What is computed from a growing thing grows too; the first that a line of the user's makes grow is the keeper.
    """
    bounded: list[Keeper] = []
    for entry in memory.growing:
        keeper = _located(entry, memory)
        if keeper is not None and not keeper.bound:
            return Keepers(keeper, bounded)
        bounded += [keeper] if keeper is not None else []
    unlocated = [entry for entry in memory.growing if all(entry is not keeper.kept for keeper in bounded)]
    return Keepers(Keeper(unlocated[0], None, "") if unlocated else None, bounded)


def _located(entry: GrowingObject, memory: MemoryMeasurement) -> Keeper | None:
    if entry.wrapped is not None:
        file, function, line = entry.wrapped
        code = source.code_at(file, line)
        return Keeper(entry, Culprit(function=function, file=file, line=line, share=0.0, code=code), "")
    culprit = locate(entry.path, entry.file, entry.function) or locate(entry.path, *memory.loop)
    if culprit is None:
        return None
    if entry.len_per_step <= 0 or entry.graph_per_step > 0:
        return Keeper(entry, culprit, "")  # a capacity bounds how many entries there are, not how large one gets
    tree = source.syntax_tree(culprit.file)
    return Keeper(entry, culprit, bound_of(tree, culprit.line, names_in(entry.path)[-1]) if tree is not None else "")
