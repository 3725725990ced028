"""Norms of products of two tensors, one for each example, from the factors."""

from __future__ import annotations

import string
from typing import Any

import torch


class _FactoredNorm:
    """Of what ``torch.einsum`` makes of two tensors: an axis of examples, which both have, and others of each."""

    @classmethod
    def norms(cls, equation: str, left: Any, right: Any) -> Any:
        """The norm of each example's part of the result."""
        parts = cls._parts(equation, left, right)
        if parts is None:
            return torch.einsum(equation, left, right).flatten(1).norm(dim=1)
        left, right = parts
        if left.shape[1] == 1:
            return left.flatten(1).norm(dim=1) * right.flatten(1).norm(dim=1)
        return cls._squares(left, right).sqrt()

    @classmethod
    def squares(cls, equation: str, left: Any, right: Any) -> Any:
        """The sum of the squares of each example's part of the result."""
        parts = cls._parts(equation, left, right)
        if parts is None:
            return torch.einsum(equation, left, right).flatten(1).square().sum(1)
        return cls._squares(*parts)

    @staticmethod
    def _squares(left: Any, right: Any) -> Any:
        """Of what is summed over, each pair of places: the products of their overlaps on both sides."""
        return ((left @ left.mT) * (right @ right.mT)).sum((1, 2)).clamp_min(0)

    @staticmethod
    def _parts(equation: str, left: Any, right: Any) -> Any:
        """Both as (examples, what is summed over, own axes); None where the product is as cheap, or another."""
        operands, _, made = equation.partition("->")
        sides = operands.split(",")
        both = isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor)
        if not both or left.dtype != right.dtype or not left.is_floating_point() or left.dtype.itemsize < 4:
            return None
        if left.requires_grad or right.requires_grad or torch.is_autocast_enabled(left.device.type):
            return None
        free = [letter for letter in string.ascii_letters if letter not in equation]
        dots = [tensor.dim() - len(side.replace("...", "")) for tensor, side in zip((left, right), sides)]
        if dots[0] != dots[1] or not 0 <= dots[0] <= len(free):
            return None
        axes = [side.replace("...", "".join(free[: dots[0]])) for side in sides]
        if any(len(side) != tensor.dim() for side, tensor in zip(axes, (left, right))):
            return None
        sizes = [dict(zip(side, tensor.shape)) for side, tensor in zip(axes, (left, right))]
        summed = [axis for axis in axes[0] if axis in axes[1] and axis != made[0]]
        if any(sizes[0][axis] != sizes[1][axis] for axis in (made[0], *summed)):
            return None
        order = [[made[0], *summed, *(axis for axis in side if axis not in (made[0], *summed))] for side in axes]
        tensors = [
            tensor.permute([side.index(axis) for axis in wanted])
            for tensor, side, wanted in zip((left, right), axes, order)
        ]
        flat = [
            tensor.flatten(1 + len(summed)).flatten(1, len(summed)) if summed else tensor.flatten(1).unsqueeze(1)
            for tensor in tensors
        ]
        length, widths = flat[0].shape[1], [tensor.shape[2] for tensor in flat]
        return flat if length * sum(widths) <= widths[0] * widths[1] else None
