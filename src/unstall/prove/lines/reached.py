"""Which lines of a change are reached, and whether others are under the program's own seeds than under any.

A change that knows what comes out under the program's seeds has to tell these from others somewhere: there it takes
another way. A way that is taken under one seed and not under the next is nothing bad in itself (a rare case in the
data), so it must be reached under the program's own seeds and under none of several others, or the other way round.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from unstall.child.trial import reached as child
from unstall.prove.lines.sources import Change
from unstall.prove.trees import Sides

_MACHINE_CODE = (".so", ".pyd", ".dll", ".dylib")


class Place(NamedTuple):
    """An instruction of the program; the beginning of a function where the offset is negative."""

    path: str
    function: str
    first_line: int
    line: int
    offset: int


LOST = Place(*child.LOST)
"""Is among them where the program has ended the following."""


def places_in(path: Path) -> frozenset[Place]:
    """What the child side has written (:mod:`unstall.child.trial.reached`); nothing where that is nothing."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return frozenset()
    return frozenset(place for line in lines if (place := _place(line)) is not None)


def _place(line: str) -> Place | None:
    """None of what the judged program wrote there itself."""
    try:
        path, function, first_line, number, offset = json.loads(line)
        return Place(str(path), str(function), int(first_line), int(number), int(offset))
    except (ValueError, TypeError):
        return None


class LoopLines(NamedTuple):
    """(file, line) of what was being executed in the program's loops."""

    steps: frozenset[tuple[str, int]] = frozenset()
    """While optimizers made their steps."""
    evaluations: frozenset[tuple[str, int]] = frozenset()
    """While models were called that did not learn."""


def loop_lines_in(path: Path) -> LoopLines:
    """What the child side has written; nothing where that is nothing."""
    try:
        told = json.loads(path.read_text())
        return LoopLines(*(frozenset((str(file), int(line)) for file, line in told[of]) for of in LoopLines._fields))
    except (OSError, ValueError, TypeError, KeyError):
        return LoopLines()


def compiled(sides: Sides) -> Iterator[str]:
    """``fast.so (compiled)`` for each library of machine code that the change brings: nobody can follow it."""
    for path, _, after in sides.differing:
        if after is not None and path.suffix in _MACHINE_CODE:
            yield f"{path.name} (compiled)"


def only_here(own: frozenset[Place], others: Sequence[frozenset[Place]]) -> tuple[Place, bool] | None:
    """The first place that tells a run under the program's own seeds from all others, and whether it is reached there.

    None where there is none.
    """
    if not others:
        return None
    any_other, each_other = frozenset[Place]().union(*others), frozenset.intersection(*others)
    differing = [*((place, True) for place in own - any_other), *((place, False) for place in each_other - own)]
    return min(differing, default=None)


def in_words(differing: tuple[Place, bool], others: int) -> str:
    """What tells the program's own seeds from so many others, for a person."""
    place, is_here = differing
    name = f"{Path(place.path).name}:{place.line}" + (f" ({place.function})" if place.offset < 0 else "")
    if is_here:
        return f"{name} runs under the program's own seeds, and under none of {others} others: it may be for one result"
    return (
        f"{name} runs under {others} other seeds, and not under the program's own: the change may recognise its seeds"
    )


def never(change: Change, reached: frozenset[Place]) -> Iterator[str]:
    """``data.py:41-43`` for each block of changed lines that hold code, none of which was reached."""
    reached_lines = {(place.path, place.line) for place in reached if place.offset >= 0}
    for path, changed in change.lines.items():
        with_code = _with_code(change.sides.changed.get(Path(path)), path)
        missed = [line for line in changed if line in with_code and (path, line) not in reached_lines]
        for _, block in groupby(enumerate(missed), lambda pair: pair[1] - pair[0]):
            numbers = [line for _, line in block]
            yield f"{Path(path).name}:{numbers[0]}" + (f"-{numbers[-1]}" if len(numbers) > 1 else "")


def _with_code(content: bytes | None, path: str) -> set[int]:
    """The lines that hold instructions. ``content``: None where the working tree's file is meant."""
    try:
        source = Path(path).read_bytes() if content is None else content
        return set(_lines(compile(source, path, "exec", dont_inherit=True)))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return set()


def _lines(code: CodeType) -> Iterator[int]:
    own = [line for _, _, line in code.co_lines() if line]
    yield from own if code.co_name == "<module>" else [line for line in own if line != code.co_firstlineno]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _lines(constant)
