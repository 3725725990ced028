"""Tensors that are joined to again and again: each grows in spare room behind what it holds."""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

import torch


class _JoinedTensors:
    """By the identity of a tensor that was joined here: (a reference to it, its length, the buffer that it lies in).

    For tensors that nobody changes in place: the next one holds the same memory.
    """

    buffers: ClassVar[dict[int, Any]] = {}

    @classmethod
    def join(cls, old: Any, new: Any) -> Any:
        """``torch.cat([old, new])``, which copies ``new`` alone as long as there is room."""
        if not cls._is_plain(old) or not cls._is_plain(new) or torch.compiler.is_compiling():
            return torch.cat([old, new])
        if old.dtype != new.dtype or old.device != new.device or old.shape[1:] != new.shape[1:]:
            return torch.cat([old, new])
        count, total = len(old), len(old) + len(new)
        buffer = cls._buffer(old)
        if buffer is None or total > len(buffer):
            buffer = old.new_zeros((2 * total, *old.shape[1:]))
            buffer[:count] = old
        buffer[count:total] = new
        # With a version of its own, so that autograd may have kept an older one.
        joined = buffer[:total].data
        key, forget = id(joined), cls.buffers.pop
        cls.buffers[key] = weakref.ref(joined, lambda _: forget(key, None)), total, buffer
        return joined

    @classmethod
    def _buffer(cls, old: Any) -> Any:
        """That a tensor lies in, if it is as it was when it was joined; nobody else gets its room."""
        reference, length, buffer = cls.buffers.pop(id(old), (None, 0, None))
        if reference is None or reference() is not old or len(old) != length or old.data_ptr() != buffer.data_ptr():
            return None
        return buffer if buffer.is_inference() == torch.is_inference_mode_enabled() else None

    @staticmethod
    def _is_plain(tensor: Any) -> bool:
        """Whether a tensor is an ordinary one, laid out row by row, that autograd does not follow."""
        return (
            type(tensor) is torch.Tensor
            and tensor.dim() > 0
            and tensor.layout is torch.strided
            and tensor.is_contiguous()
            and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())
            and not (tensor.requires_grad and torch.is_grad_enabled())
        )
