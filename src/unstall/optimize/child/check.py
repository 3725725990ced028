"""Prove that what a patch keeps from one visit to the next does not depend on random numbers.

The cache that the patch puts into the user's module is found when a loader is made; each sample that it is asked for is
made twice, under different seeds, and the two must be equal to the byte. ``cache-mismatch.txt`` tells when they are not.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any

from unstall.optimize.child import seed

_CACHE = "_SampleCache"


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """A hook where loaders are made."""
    return [("torch.utils.data.dataloader", lambda module: _install(module, folder))]


def _install(module: Any, folder: str) -> None:
    original = module.DataLoader.__init__
    done: set[int] = set()

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in list(sys.modules):
            cache = getattr(sys.modules[name], "__dict__", {}).get(_CACHE)
            if isinstance(cache, type) and id(cache) not in done:
                done.add(id(cache))
                _check(cache, folder)
        original(self, *args, **kwargs)

    module.DataLoader.__init__ = __init__


def _check(cache: Any, folder: str) -> None:
    get = cache.get

    def checked(self: Any, load: Any, index: Any) -> Any:
        with seed.Generators():
            made = []
            for number in (1, 2):
                seed.seed_all("check", number)
                made.append(pickle.dumps(load(index)))
        if made[0] != made[1]:
            with open(os.path.join(folder, "cache-mismatch.txt"), "w") as file:
                file.write(f"sample {index!r} is not the same every time it is made")
        return get(self, load, index)

    cache.get = checked
