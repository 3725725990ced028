"""Files for the time of a run that have the same name in every run: two runs at once would write the same one.

Whoever starts two trainings side by side, with other seeds say, gets a mixture of both. Told by the kernel's account of
what is written below the sandbox's folder (:mod:`unstall.prove.left_behind.saves`).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from unstall.prove.runner import WholeRun
from unstall.prove.timing import ProofPair
from unstall.prove.trees import Sides

_SHARED = ("/tmp", "/var/tmp", "/dev/shm", tempfile.gettempdir(), os.path.expanduser("~"))
_CACHES = ("/.cache/", "/torchinductor_", "/.triton/", "/__pycache__/")
"""In paths of caches that libraries keep, and that runs may share."""


def shared_by_runs(pairs: Sequence[ProofPair], sides: Sides) -> str | None:
    """What all runs of the changed program write for their own time, and the original none, in words."""
    of_changed = [set(_temporary(pair.changed, sides)) for pair in pairs]
    of_original = set[str]().union(*(_temporary(pair.original, sides) for pair in pairs))
    names = set.intersection(*of_changed) - of_original if of_changed else set()
    if not names:
        return None
    return f"each of its runs writes {min(names)}, which two runs at once would share; the original's do not"


def is_cache(path: str) -> bool:
    """Whether a file is of a cache that a library keeps."""
    return any(word in path for word in _CACHES)


def _temporary(run: WholeRun, sides: Sides) -> Iterator[str]:
    """Files in folders of the machine that are gone at the end of a run."""
    own = {str(path.parent) + os.sep for files in (sides.original, sides.changed) for path in files}
    for path in run.saves:
        is_shared = any(path.startswith(folder + os.sep) for folder in _SHARED)
        is_own = any(path.startswith(folder) for folder in own) or path.startswith(str(Path.cwd()) + os.sep)
        if is_shared and not is_own and path not in run.effects.contents and not is_cache(path):
            yield path
