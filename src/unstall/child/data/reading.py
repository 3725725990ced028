"""Samples of the program's own loader, fetched in this process as the loader's fetcher would."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

from unstall.child.data import limits
from unstall.child.data.clock import Cost, timed


class EmptyLoader(Exception):
    """The loader has nothing to give."""


class Source:
    """Where a loader's samples come from: one call of :meth:`fetch` is one sample, or one batch where they come so."""

    def __init__(self, loader: Any):
        self.loader = loader
        self.dataset = loader.dataset
        self.iterable = _is_iterable(loader)
        self.collates = loader.batch_size is not None if self.iterable else loader.batch_sampler is not None
        """Whether the loader makes batches of samples; else the dataset gives whatever the loop gets."""
        self._iterator: Iterator[Any] | None = None
        self._indices: Iterator[Any] | None = None

    @property
    def whole_batches(self) -> bool:
        """Whether one fetch gives a list of the samples of a batch."""
        return not self.iterable and self.collates and callable(getattr(self.dataset, "__getitems__", None))

    def next_fetch(self) -> tuple[Any, Any, int]:
        """Function and argument of the next fetch, and how many samples it gives. Begins anew at the end."""
        if self.iterable:
            if self._iterator is None:
                self._iterator = iter(self.dataset)
            return next, self._iterator, 1
        index = self._next_index()
        if self.whole_batches:
            return self.dataset.__getitems__, index, len(index)
        return self.dataset.__getitem__, index, 1

    def fetch(self, cost: Cost) -> list[Any]:
        """The samples of one fetch, its time added to ``cost``. Raises :class:`EmptyLoader`."""
        for _ in range(2):
            function, argument, items = self.next_fetch()
            try:
                fetched = timed(cost, items, function, argument)
            except StopIteration:
                self._iterator = None  # the dataset has ended: once more from its beginning
                continue
            return list(fetched) if self.whole_batches else [fetched]
        raise EmptyLoader(f"its dataset, {type(self.dataset).__qualname__}, gives nothing")

    def _next_index(self) -> Any:
        for _ in range(2):
            if self._indices is None:
                sampler = self.loader.batch_sampler if self.collates else self.loader.sampler
                batches = iter(sampler)
                as_batches = self.whole_batches or not self.collates
                self._indices = batches if as_batches else itertools.chain.from_iterable(batches)
            index = next(self._indices, _END)
            if index is not _END:
                return index
            self._indices = None
        raise EmptyLoader(f"its sampler gives no index (the dataset, {type(self.dataset).__qualname__}, is empty?)")


def read(source: Source, *, seconds: float, most: int = limits.MOST_SAMPLES) -> tuple[Cost, Cost]:
    """What a sample takes, read one after the other: the very first apart, then those after it."""
    first, later = Cost(), Cost()
    source.fetch(first)
    ends = time.perf_counter() + seconds
    while later.count < most and (time.perf_counter() < ends or not later.count):
        source.fetch(later)
    return first, later


_END = object()


def _is_iterable(loader: Any) -> bool:
    from torch.utils.data import IterableDataset

    return isinstance(loader.dataset, IterableDataset)
