"""How often each function of the program runs, under its own seeds and under others.

Results that are known for some epochs alone need no way of their own: ``known.get(key) or compute(data)`` runs in all.
But what they are the results of is computed less often under the program's own seeds. A count that varies by itself
says nothing, so all other seeds must agree on it, and the original must not have the same difference.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from unstall.prove import thresholds
from unstall.text.units import times


class CalledFunction(NamedTuple):
    """A function of the program."""

    path: str
    name: str
    first_line: int


Place = TypeVar("Place", bound=tuple[Any, ...])
Calls = Mapping[CalledFunction, int]
Quarters = Mapping[CalledFunction, Sequence[int]]
"""How often each function was called in each quarter of the steps."""


class SeedDependence(NamedTuple):
    """A function that is called more or less often under the program's own seeds than under others."""

    function: CalledFunction
    own: int
    others: int


def counted_in(path: Path) -> tuple[Calls, Quarters]:
    """What the child side has written (:mod:`unstall.child.trial.reached`); nothing where that is nothing.

    In quarters nothing of a program of few steps.
    """
    calls: Counter[CalledFunction] = Counter()
    of_quarters: dict[CalledFunction, Sequence[int]] = {}
    try:
        for file, name, first_line, count, quarters in json.loads(path.read_text()):
            function = CalledFunction(str(file), str(name), int(first_line))
            calls[function] += int(count)
            if quarters:
                before = of_quarters.get(function, [0] * len(quarters))
                of_quarters[function] = [int(new) + old for new, old in zip(quarters, before)]
    except (OSError, ValueError, TypeError):  # the judged program may have written something else there
        return {}, {}
    return calls, of_quarters


def rising(quarters: Mapping[Place, Sequence[int]]) -> list[tuple[Place, tuple[int, ...]]]:
    """(place, its counts in each quarter) of those that come to more and more: a function's calls, say.

    In the last quarter more than twice as many as in the first, in which there are some already: what begins late,
    with the second half say, is none.
    """
    return sorted(
        (place, tuple(counts))
        for place, counts in quarters.items()
        if counts[0] > 0 and all(a < b for a, b in pairwise(counts)) and counts[-1] > thresholds.RISING * counts[0]
    )


def rising_in_words(function: CalledFunction, counts: Sequence[int]) -> str:
    """That a function is called more and more often, for a person."""
    return (
        f"{_place(function)} is called more and more often, {times(counts[0])} in the first quarter of the steps and "
        f"{times(counts[-1])} in the last, which nothing in the original is: longer runs take longer and longer"
    )


def seed_dependent(own: Calls, others: Sequence[Calls]) -> list[SeedDependence]:
    """Functions that all other seeds call equally often, and the program's own not; none where nothing was counted."""
    if not own or not others or not all(others):
        return []
    functions = sorted(frozenset(own).union(*others))
    counts = [(function, own.get(function, 0), {calls.get(function, 0) for calls in others}) for function in functions]
    return [
        SeedDependence(function, here, *there)
        for function, here, there in counts
        if len(there) == 1 and here not in there
    ]


def not_the_originals(suspects: Sequence[SeedDependence], own: Calls, other: Calls) -> SeedDependence | None:
    """The first of these that the original calls equally often under both, or does not have; None if there is none.

    A function is the original's by its file and name: its lines may have moved.
    """
    here, there = _by_name(own), _by_name(other)
    for suspect in suspects:
        name = suspect.function.path, suspect.function.name
        if here.get(name, 0) == there.get(name, 0):
            return suspect
    return None


def in_words(dependence: SeedDependence, others: int) -> str:
    """What tells the program's own seeds from so many others, for a person."""
    return (
        f"{_place(dependence.function)} runs {times(dependence.own)} under the program's own seeds, and "
        f"{times(dependence.others)} under {others} others: results may be known beforehand"
    )


def _place(function: CalledFunction) -> str:
    return f"{function.name} ({Path(function.path).name}:{function.first_line})"


def _by_name(calls: Calls) -> Mapping[tuple[str, str], int]:
    by_name: Counter[tuple[str, str]] = Counter()
    for function, count in calls.items():
        by_name[function.path, function.name] += count
    return by_name
