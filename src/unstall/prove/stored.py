"""Whether what a run stores is what its models held, where the original's is.

Numbers that are no further off than rounding takes a few of them pass for close. But what a program saves does not go
through any rounding: where the original stores the very bits of its weights, so must the changed program.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unstall.prove.left_behind.binaries import BinaryPart
from unstall.prove.left_behind.effects import NOTHING
from unstall.prove.runner import WholeRun
from unstall.records.proof import Difference

_LEAST_BYTES = 64  # of few numbers, others may be the same by chance


def first_difference(original: WholeRun, changed: WholeRun) -> Difference | None:
    """The first part of a file that is among what the original's models hold, and not so on the other side."""
    held, held_by_changed = ({tensor.digest for tensor in run.tensors} for run in (original, changed))
    for file, name, before, after in _common(original, changed):
        if before.digest in held and after.digest not in held_by_changed:
            place = Path(file).name + f", {name}" * bool(name)
            return Difference(kind="values", place=place, detail="it holds other numbers than the model does")
    return None


def _common(original: WholeRun, changed: WholeRun) -> Iterator[tuple[str, str, BinaryPart, BinaryPart]]:
    """(file, name of a part, the original's, the changed program's) of the numbers that both sides store."""
    for file, content in changed.effects.contents.items():
        known = original.effects.contents.get(file, NOTHING).parts
        for name, after in content.parts.items():
            if name in known and known[name].is_like(after) and after.size >= _LEAST_BYTES:
                yield file, name, known[name], after
