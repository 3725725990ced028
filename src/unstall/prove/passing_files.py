"""Files that a program writes, does not read, and removes again: they are there for whoever looks at it meanwhile.

Drafts of the weights that a service loads, say, or the last checkpoints of which the oldest goes. No comparison of what
runs leave behind shows that they are written no more. Told by the kernel's account of what is written, read and moved
below the sandbox's folder (:mod:`unstall.prove.left_behind.saves`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unstall.prove import thresholds
from unstall.prove.left_behind.saves import Saved
from unstall.prove.runner import WholeRun
from unstall.prove.scratch import is_cache
from unstall.prove.timing import ProofPair
from unstall.text.units import times

_FOR_OTHERS = "that it does not read and that are gone at its end, where others may look at them meanwhile,"


def missing(pairs: Sequence[ProofPair]) -> str | None:
    """That each run of the changed program saves such files less often than any of the original's, or less in them."""
    of_original = [_passing(pair.original) for pair in pairs]
    of_changed = [_passing(pair.changed) for pair in pairs]
    before = min((sum(saved.least for saved in files.values()) for files in of_original), default=0)
    after = max((sum(saved.most for saved in files.values()) for files in of_changed), default=0)
    if after < before:
        name = max(of_original[0], key=lambda path: of_original[0][path].least)
        return f"it saves files {_FOR_OTHERS} {times(after)}, and the original {times(before)} ({name}, say)"
    size = min((_bytes(files) for files in of_original), default=0)
    rest = max((_bytes(files) for files in of_changed), default=0)
    if rest >= thresholds.LESS_FOR_OTHERS * size:
        return None
    name = max(of_original[0], key=lambda path: of_original[0][path].grown_to)
    return f"it writes {rest:,} bytes into files {_FOR_OTHERS}, and the original {size:,} ({name}, say)"


def _bytes(files: Mapping[str, Saved]) -> int:
    return sum(saved.grown_to for saved in files.values())


def _passing(run: WholeRun) -> dict[str, Saved]:
    """The files that were saved for nobody inside, and are gone."""
    gone = {path: saved for path, saved in run.saves.items() if path not in run.effects.contents}
    return {
        path: saved
        for path, saved in gone.items()
        if max((saved.grown_to, *saved.sizes)) >= thresholds.LEAST_FOR_OTHERS and not (saved.is_used or is_cache(path))
    }
