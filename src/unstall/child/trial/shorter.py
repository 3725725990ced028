"""Leave the last samples of each epoch out, so that a change which holds for one length of the data only shows.

A last batch that is not full, or fuller than before: what a ``drop_last``, sizes written into a change, or tables by
the number of a batch are worth then. ``plan["samples"]``: how many torch's samplers leave out; with
``plan["datasets"]`` every dataset says that it has so many fewer, which a sampler of the program's own asks it for.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_SAMPLERS = ("SequentialSampler", "RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")

_DATASETS = ("TensorDataset", "Subset")

epochs = 0
"""How many were shortened so far: a program that orders its data by itself has none."""
_asked: set[int] = set()
"""Datasets that are just being asked for their length, by a class whose own asks another's."""


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """The samplers or the datasets, when their module is imported."""
    samples = int(plan["samples"])
    if plan.get("datasets"):
        return [("torch.utils.data.dataset", lambda module: shorten_datasets(module, samples))]
    return [("torch.utils.data.sampler", lambda module: shorten(module, samples))]


def shorten(module: Any, samples: int) -> None:
    """Let every sampler of ``torch.utils.data.sampler`` end so many samples earlier; one at least is left."""
    end_after(module, lambda whole: max(whole - samples, min(whole, 1)))


def end_after(module: Any, wanted: Callable[[int], int]) -> None:
    """Let every sampler of ``torch.utils.data.sampler`` end after as many samples as are wanted of so many."""
    for name in _SAMPLERS:
        _end_after(getattr(module, name), wanted)


def _end_after(sampler: Any, wanted: Callable[[int], int]) -> None:
    every, length = sampler.__iter__, sampler.__len__

    def __len__(self: Any) -> int:
        return wanted(length(self))

    def __iter__(self: Any) -> Any:
        global epochs
        epochs += 1
        return itertools.islice(every(self), __len__(self))

    sampler.__iter__, sampler.__len__ = __iter__, __len__


def shorten_datasets(module: Any, samples: int) -> None:
    """Let every class of datasets that the program makes of ``torch.utils.data.dataset`` say so many samples fewer."""
    made = module.Dataset.__dict__.get("__init_subclass__")

    def __init_subclass__(cls: type, **kwargs: Any) -> None:
        (made.__get__(None, cls) if made else super(module.Dataset, cls).__init_subclass__)(**kwargs)
        if "__len__" in cls.__dict__:
            _shorten_dataset(cls, samples)

    module.Dataset.__init_subclass__ = classmethod(__init_subclass__)
    for name in _DATASETS:
        _shorten_dataset(getattr(module, name), samples)


def _shorten_dataset(cls: Any, samples: int) -> None:
    length = cls.__len__

    def __len__(self: Any) -> int:
        global epochs
        if id(self) in _asked:
            return int(length(self))
        _asked.add(id(self))
        try:
            whole = int(length(self))
        finally:
            _asked.discard(id(self))
        epochs += 1
        return max(whole - samples, min(whole, 1))

    cls.__len__ = __len__
