"""Work that grows from step to step inside calls of torch: what is computed from all that was seen so far.

Every operator that a line of the program calls is asked how many elements it takes, in each quarter of the steps. One
that takes more and more of them, equally under all seeds, makes longer runs slower than they need be. In a validation a
model finds more and more as it learns, too; what takes just as much more each time takes all that there was so far.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from unstall.prove import thresholds


class OperatorCall(NamedTuple):
    """An operator where a line of the program calls it."""

    path: str
    function: str
    first_line: int
    operator: str
    line: int


Volume = Mapping[OperatorCall, Sequence[int]]
"""How many elements each took in each quarter of the steps."""


def counted_in(path: Path) -> Volume:
    """What the child side has written (:mod:`unstall.child.trial.volume`); nothing where that is nothing."""
    try:
        return {
            OperatorCall(str(file), str(function), int(first_line), str(operator), int(line)): [*map(int, quarters)]
            for file, function, first_line, operator, line, quarters in json.loads(path.read_text())
        }
    except (OSError, ValueError, TypeError):  # the judged program may have written something else there
        return {}


def accumulating(validations: Volume) -> list[OperatorCall]:
    """Operators that take in the second validation twice what they took in the first, and so on."""
    return sorted(
        call
        for call, counts in validations.items()
        if counts[0] > 0
        and all(abs(count / counts[0] / n - 1) < thresholds.IN_PROPORTION for n, count in enumerate(counts, 1))
    )


def accumulating_in_words(call: OperatorCall, elements: Sequence[int]) -> str:
    """That an operator takes all that there was so far, for a person."""
    return (
        f"{call.operator} in {call.function} ({Path(call.path).name}:{call.line}) takes more elements in each "
        f"validation, {elements[0]:,} in the first and {elements[-1]:,} in the fourth, which nothing in the original "
        "does: longer runs take longer and longer"
    )


def rising_in_words(call: OperatorCall, elements: Sequence[int]) -> str:
    """That an operator takes more and more, for a person."""
    return (
        f"{call.operator} in {call.function} ({Path(call.path).name}:{call.line}) takes more and more elements, "
        f"{elements[0]:,} in the first quarter of the steps and {elements[-1]:,} in the last, which nothing in the "
        "original does: longer runs take longer and longer"
    )
