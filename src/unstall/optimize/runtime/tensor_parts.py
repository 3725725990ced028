"""The parts of a tensor that a loop asks for one by one, taken at once: one gradient for all of them."""

from __future__ import annotations

from typing import Any

import torch


class _TensorParts:
    """Answers ``x[:, t]``, ``x[:, t * n : (t + 1) * n]``, ``x.select(1, t)`` and ``x.narrow(1, t * n, n)``, as ``x``.

    The gradient of each such part is a tensor of the whole, with zeros around; ``unbind`` and ``split`` have one.
    """

    def __init__(self, whole: Any):
        self._whole = whole
        self._unbound: dict[int, Any] = {}
        self._split: dict[Any, Any] = {}
        self._is_plain = (
            type(whole) is torch.Tensor and whole.requires_grad and torch.is_grad_enabled() and whole.dim() > 0
        )

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        free = [each is Ellipsis or (isinstance(each, slice) and each == slice(None)) for each in keys]
        if not self._is_plain or free.count(False) != 1 or len(keys) > self._whole.dim():
            return self._whole[key]
        dim = free.index(False)
        wanted = keys[dim]
        if Ellipsis in keys[:dim]:
            dim -= len(keys)
        if type(wanted) is int:
            return self.select(dim, wanted)
        if not isinstance(wanted, slice) or wanted.step is not None:
            return self._whole[key]
        start, stop = wanted.start, wanted.stop
        if type(start) is not int or type(stop) is not int or not 0 <= start < stop <= self._whole.shape[dim]:
            return self._whole[key]
        return self.narrow(dim, start, stop - start)

    def select(self, dim: Any, index: Any) -> Any:
        if not self._is_plain or type(dim) is not int or type(index) is not int:
            return self._whole.select(dim, index)
        if dim not in self._unbound:
            self._unbound[dim] = self._whole.unbind(dim)
        parts = self._unbound[dim]
        return parts[index] if -len(parts) <= index < len(parts) else self._whole.select(dim, index)

    def narrow(self, dim: Any, start: Any, length: Any) -> Any:
        is_part = type(dim) is int and type(start) is int and type(length) is int and length > 0
        if not self._is_plain or not is_part or start < 0 or start % length:
            return self._whole.narrow(dim, start, length)
        if (dim, length) not in self._split:
            self._split[dim, length] = self._whole.split(length, dim)
        parts = self._split[dim, length]
        place = start // length
        is_whole = place < len(parts) and parts[place].shape[dim] == length
        return parts[place] if is_whole else self._whole.narrow(dim, start, length)
