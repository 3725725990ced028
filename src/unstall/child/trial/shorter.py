"""Leave the last samples of each epoch out, so that a change which holds for one length of the data only shows.

A last batch that is not full, or fuller than before: what a ``drop_last``, sizes written into a change, or tables by
the number of a batch are worth then. ``plan["samples"]``: how many torch's samplers leave out.
"""

from __future__ import annotations

import itertools
from typing import Any

_SAMPLERS = ("SequentialSampler", "RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")

epochs = 0
"""How many were shortened so far: a program that orders its data by itself has none."""


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """The samplers, when their module is imported."""
    return [("torch.utils.data.sampler", lambda module: shorten(module, int(plan["samples"])))]


def shorten(module: Any, samples: int) -> None:
    """Let every sampler of ``torch.utils.data.sampler`` end so many samples earlier; one at least is left."""
    for name in _SAMPLERS:
        _shorten(getattr(module, name), samples)


def _shorten(sampler: Any, samples: int) -> None:
    every, length = sampler.__iter__, sampler.__len__

    def __len__(self: Any) -> int:
        whole = length(self)
        return max(whole - samples, min(whole, 1))

    def __iter__(self: Any) -> Any:
        global epochs
        epochs += 1
        return itertools.islice(every(self), __len__(self))

    sampler.__iter__, sampler.__len__ = __iter__, __len__
