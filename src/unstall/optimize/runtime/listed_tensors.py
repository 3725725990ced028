"""Tensors of lists by way of NumPy: torch asks each item for its type and its value, and rows of NumPy item by item."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import torch


class _ListedTensors:
    """The tensors that torch makes of nested lists of plain numbers, and of lists of arrays that are alike."""

    @classmethod
    def make(cls, constructor: Any, *data: Any, **options: Any) -> Any:
        """``constructor(*data, **options)``, where that is ``torch.tensor`` or one like it."""
        if len(data) == 1 and type(data[0]) in (list, tuple) and not torch.compiler.is_compiling():
            wanted = options.get("dtype")
            if constructor not in (torch.tensor, torch.as_tensor):
                wanted = torch.get_default_dtype() if constructor is torch.Tensor else constructor.dtype
                options = {"device": "cpu"}
            array, dtype = cls._read(data[0], wanted)
            if array is not None:
                return torch.tensor(array, **{**options, "dtype": dtype})
        return constructor(*data, **options)

    @classmethod
    def _read(cls, data: Any, wanted: Any) -> Any:
        """(the items as an array that rounds to the same tensor, its dtype); twice None where torch must read them."""
        kind, items = cls._items(data)
        try:
            array = None if kind is None else numpy.array(data)
        except ValueError:  # of different lengths: torch says so
            array = None
        if array is None or array.dtype != kind or len(items) * getattr(items[0], "size", 1) != array.size:
            return None, None
        given = torch.from_numpy(array).dtype
        if type(items[0]) in (float, numpy.float64):
            given = torch.get_default_dtype()
        if wanted is None or wanted is given:
            return array, given
        if wanted in (torch.float32, torch.float64):
            return array.astype(numpy.float64), wanted  # as torch reads any number
        # NumPy's booleans are no integers for torch, as Python's are.
        is_exact = wanted is torch.int64 and (array.dtype.kind in "ui" or type(items[0]) is bool)
        return (array, wanted) if is_exact else (None, None)

    @classmethod
    def _items(cls, data: Any) -> Any:
        """(NumPy's dtype of what nested lists hold, where that is all of one kind, and it in one list); else None."""
        items, kinds = list(data), set(map(type, data))
        while kinds and kinds <= {list, tuple}:
            items = list(itertools.chain.from_iterable(items))
            kinds = set(map(type, items))
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is numpy.ndarray and items[0].ndim and len({(item.dtype, item.shape) for item in items}) == 1:
            dtype = items[0].dtype
        elif kind in (bool, int, float) or (isinstance(kind, type) and issubclass(kind, numpy.generic)):
            dtype = numpy.dtype(kind)
        else:
            return None, items
        known = dtype.isnative and dtype in ("b1", "u1", "i1", "i2", "i4", "i8", "f4", "f8")
        return (dtype if known else None), items
