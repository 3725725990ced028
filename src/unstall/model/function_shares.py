"""Which functions the time of each place goes to, by the stack samples: to ask what if one of them were faster."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unstall.diagnose.placing import Placed
    from unstall.records.measurements import Measurement

DATA = "data"
"""The place where batches are made: in the loader's workers, or in the main thread where there are none."""

Key = tuple[str, ...]
"""A function by the parts of its dotted name: its file's path, then its qualified name."""


@dataclass(frozen=True)
class FunctionShares:
    """By place (``data`` or a phase): the functions on each distinct stack, and how often it was seen."""

    stacks: Mapping[str, Sequence[tuple[frozenset[Key], float]]] = field(default_factory=dict)
    own: frozenset[Key] = frozenset()
    """Those of the functions that are in the user's files."""

    def find(self, name: str) -> set[Key]:
        """The functions that a name may mean: their dotted name ends with it. Empty: no sample shows it."""
        parts = tuple(name.split("."))
        keys = {key for stacks in self.stacks.values() for functions, _ in stacks for key in functions}
        return {key for key in keys if key[-len(parts) :] == parts}

    def share(self, component: str, key: Key) -> float:
        """Share of a place's samples with this function on their stack."""
        stacks = self.stacks.get(component, ())
        total = sum(count for _, count in stacks)
        return sum(count for functions, count in stacks if key in functions) / total if total else 0.0

    def scaled(self, scales: Mapping[Key, float]) -> FunctionShares:
        """The samples of a run in which each of these functions takes so many times as long."""
        stacks = {
            component: [(functions, _scaled(functions, count, scales)) for functions, count in stacks]
            for component, stacks in self.stacks.items()
        }
        return replace(self, stacks=stacks)

    def factor(self, component: str, scales: Mapping[Key, float]) -> float:
        """How many times as long a place takes if each of these functions takes so many times as long.

        A stack with several of them on it changes by the product: the inner one is part of the outer one.
        """
        stacks = self.stacks.get(component, ())
        total = sum(count for _, count in stacks)
        if not total:
            return 1.0
        return sum(_scaled(functions, count, scales) for functions, count in stacks) / total

    def largest(self, most: int = 8) -> list[tuple[str, str, float]]:
        """(function, place, share) of the user's with the most samples, for an error that says what there is."""
        shares = []
        for component, stacks in self.stacks.items():
            total = sum(count for _, count in stacks)
            counts: defaultdict[Key, float] = defaultdict(float)
            for functions, count in stacks:
                for key in functions & self.own:
                    counts[key] += count
            shares += [(short_name(key), component, count / total) for key, count in counts.items()]
        return sorted(shares, key=lambda item: -item[2])[:most]


def _scaled(functions: frozenset[Key], count: float, scales: Mapping[Key, float]) -> float:
    for key, scale in scales.items():
        if key in functions:
            count *= scale
    return count


def short_name(key: Key) -> str:
    """Class and function, without the file; a function of a module with the module."""
    return ".".join(key[-2:])


def of(measurement: Measurement) -> FunctionShares:
    """The samples of a run by place; idle workers left out."""
    from unstall.diagnose.blame import Blame
    from unstall.diagnose.placing import is_idle

    blame = Blame(measurement)
    counts: dict[str, Counter[frozenset[Key]]] = defaultdict(Counter)
    phases = {phase.name for phase in measurement.plugins.all_phases}
    made_here = measurement.loader is None or not measurement.loader.workers
    for placed in blame.main:
        component: str = placed.phase if placed.phase in phases else "other"
        if component == "data_wait":
            if not made_here:
                continue  # a wait for the workers, whose own samples tell more
            component = DATA
        counts[component][_functions(placed)] += placed.count
    for placed in blame.workers:
        if not made_here and not is_idle(placed):
            counts[DATA][_functions(placed)] += placed.count
    own = frozenset(
        _key(frame.file, function.qualname)
        for placed in [*blame.main, *blame.workers]
        for frame, function in placed.program
        if function.qualname != "<module>"
    )
    return FunctionShares({component: tuple(stacks.items()) for component, stacks in counts.items()}, own)


def _functions(placed: Placed) -> frozenset[Key]:
    """Every function on the stack, the user's by the name that the source gives it."""
    named = {(frame.file, frame.line): function.qualname for frame, function in placed.program}
    return frozenset(
        _key(frame.file, named.get((frame.file, frame.line), frame.function)) for frame in placed.sample.frames
    )


def _key(file: str, qualname: str) -> Key:
    path = PurePath(file)
    return (*path.parts[1:-1], path.stem, *(part for part in qualname.split(".") if part != "<locals>"))
