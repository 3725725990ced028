"""NumPy arrays that are joined to again and again: each grows in spare room behind what it holds."""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

import numpy


class _JoinedArrays:
    """By the identity of an array that was joined here: (a reference to it, its shape, the buffer that it lies in).

    For arrays that nobody changes in place: the next one holds the same memory.
    """

    buffers: ClassVar[dict[int, Any]] = {}

    @classmethod
    def append(cls, old: Any, new: Any) -> Any:
        """``numpy.append(old, new)``."""
        rows = numpy.ravel(new) if cls._is_plain(old, new) and old.ndim == 1 else None
        return cls._join(old, rows) if cls._fit(old, rows) else numpy.append(old, new)

    @classmethod
    def concatenate(cls, old: Any, new: Any) -> Any:
        """``numpy.concatenate([old, new])``."""
        rows = numpy.asarray(new) if cls._is_plain(old, new) else None
        return cls._join(old, rows) if cls._fit(old, rows) else numpy.concatenate([old, new])

    @classmethod
    def vstack(cls, old: Any, new: Any) -> Any:
        """``numpy.vstack([old, new])``."""
        rows = numpy.atleast_2d(new) if cls._is_plain(old, new) and old.ndim > 1 else None
        return cls._join(old, rows) if cls._fit(old, rows) else numpy.vstack([old, new])

    @classmethod
    def hstack(cls, old: Any, new: Any) -> Any:
        """``numpy.hstack([old, new])``."""
        rows = numpy.atleast_1d(new) if cls._is_plain(old, new) and old.ndim == 1 else None
        return cls._join(old, rows) if cls._fit(old, rows) else numpy.hstack([old, new])

    @staticmethod
    def _is_plain(old: Any, new: Any) -> bool:
        """Whether no array of a kind of its own is among them, which may be joined in a way of its own."""
        return type(old) is numpy.ndarray and (type(new) is numpy.ndarray or not hasattr(new, "__array__"))

    @staticmethod
    def _fit(old: Any, rows: Any) -> bool:
        """Whether joining gives an array of the same kind, with these rows at its end."""
        return (
            rows is not None
            and rows.ndim == old.ndim > 0
            and rows.shape[1:] == old.shape[1:]
            and not old.dtype.hasobject
            and old.flags.c_contiguous
            and rows.flags.c_contiguous
            and numpy.result_type(old.dtype, rows.dtype) == old.dtype
        )

    @classmethod
    def _join(cls, old: Any, rows: Any) -> Any:
        """Copy the rows behind the old ones, and these too where there is no room."""
        count, total = len(old), len(old) + len(rows)
        reference, shape, buffer = cls.buffers.pop(id(old), (None, (), None))
        is_ours = reference is not None and reference() is old and old.shape == shape and old.base is buffer
        if not is_ours or total > len(buffer):
            buffer = numpy.zeros((2 * total, *old.shape[1:]), old.dtype)
            buffer[:count] = old
        buffer[count:total] = rows
        joined = buffer[:total]
        key, forget = id(joined), cls.buffers.pop
        cls.buffers[key] = weakref.ref(joined, lambda _: forget(key, None)), joined.shape, buffer
        return joined
