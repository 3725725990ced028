"""Products that are summed as they are made: none of them is stored, as one matrix product does both."""

from __future__ import annotations

import string
from typing import Any

import torch


class _Contracted:
    """Sums of products of two tensors."""

    @classmethod
    def sum(cls, left: Any, right: Any, dim: Any, keepdim: bool = False) -> Any:
        """``(left * right).sum(dim, keepdim)``, where both are tensors of floating-point numbers."""
        dims = (dim,) if isinstance(dim, int) else tuple(dim) if isinstance(dim, (tuple, list)) else ()
        tensors = isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor)
        if not tensors or not dims or not torch.result_type(left, right).is_floating_point:
            return (left * right).sum(dim, keepdim=True) if keepdim else (left * right).sum(dim)
        number = max(left.dim(), right.dim())
        axes = string.ascii_letters[:number]
        summed = {axes[each] for each in dims}
        kept = "".join(axis for axis in axes if axis not in summed)
        result = cls.einsum(f"{axes[number - left.dim() :]},{axes[number - right.dim() :]}->{kept}", left, right)
        for place, axis in enumerate(axes):
            if keepdim and axis in summed:
                result = result.unsqueeze(place)
        return result

    @classmethod
    def einsum(cls, equation: str, left: Any, right: Any) -> Any:
        """``torch.einsum`` of two tensors, in the precision of their product and whatever their dtypes."""
        wanted = torch.result_type(left, right)
        # A matrix product knows no whole numbers on a GPU; a product would not be cast down by autocast either.
        computed = wanted if wanted.is_floating_point or wanted.is_complex else torch.float64
        with torch.autocast(left.device.type, enabled=False):
            return torch.einsum(equation, left.to(computed), right.to(computed)).to(wanted)
