"""Files that a program writes, does not read, and removes again: they are there for whoever looks at it meanwhile.

Drafts of the weights that a service loads, say, or the last checkpoints of which the oldest goes. No comparison of what
runs leave behind shows that they are written no more. Told by the kernel's account of what is written, read and moved
below the sandbox's folder (:mod:`unstall.prove.saves`).
"""

from __future__ import annotations

from collections.abc import Sequence

from unstall.prove.runner import WholeRun
from unstall.prove.saves import Saved
from unstall.prove.scratch import is_cache
from unstall.prove.timing import ProofPair
from unstall.text.units import times


def missing(pairs: Sequence[ProofPair]) -> str | None:
    """That the changed program saves such files less often, in each of its runs than in any of the original's."""
    of_original = [_passing(pair.original) for pair in pairs]
    of_changed = [_passing(pair.changed) for pair in pairs]
    before = min((sum(saved.least for saved in files.values()) for files in of_original), default=0)
    after = max((sum(saved.most for saved in files.values()) for files in of_changed), default=0)
    if after >= before:
        return None
    name = max(of_original[0], key=lambda path: of_original[0][path].least)
    return (
        f"it saves files that it does not read and that are gone at its end {times(after)}, and the original "
        f"{times(before)} ({name}, say): who looks at a run meanwhile misses them"
    )


def _passing(run: WholeRun) -> dict[str, Saved]:
    """The files that were saved for nobody inside, and are gone."""
    gone = {path: saved for path, saved in run.saves.items() if path not in run.effects.contents}
    return {path: saved for path, saved in gone.items() if not (saved.is_used or is_cache(path))}
