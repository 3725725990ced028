"""Filters that are a column times a row, along one axis after the other: a Gaussian blur, say."""

from __future__ import annotations

from typing import Any

import torch


class _SeparableFilter:
    """Convolutions of each channel by itself."""

    @classmethod
    def apply(cls, convolve: Any, input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
              dilation: Any = 1, groups: Any = 1) -> Any:  # fmt: skip
        """``convolve(input, weight, ...)``, where that is ``torch.nn.functional.conv2d``.

        On a CPU, where looking at the filter costs next to nothing beside applying it. A filter that learns stays.
        """
        axes = None
        is_alone = weight.dim() == 4 and weight.shape[1] == 1 and groups == len(weight) and min(weight.shape[2:]) > 2
        if is_alone and not isinstance(padding, str) and not weight.requires_grad and weight.device.type == "cpu":
            axes = cls._axes_of(weight)
        if axes is None:
            return convolve(input, weight, bias, stride, padding, dilation, groups)
        (stride, across), (padding, beside), (dilation, apart) = [
            (value, value) if isinstance(value, int) else tuple(value) for value in (stride, padding, dilation)
        ]
        column, row = axes
        along = convolve(input, column, None, (stride, 1), (padding, 0), (dilation, 1), groups)
        return convolve(along, row, bias, (1, across), (0, beside), (1, apart), groups)

    @classmethod
    def _axes_of(cls, weight: Any) -> Any:
        """(columns, rows) whose products are the filters, but for rounding; None where a filter is no such product."""
        if not weight.is_floating_point():
            return None
        filters = weight.detach()[:, 0]
        sizes = filters.abs().flatten(1)
        largest, place = sizes.max(1)
        if not bool((largest > 0).all()):
            return None
        each, width = torch.arange(len(filters)), filters.shape[2]
        top, left = torch.div(place, width, rounding_mode="floor"), place % width
        column = filters[each, :, left]
        row = filters[each, top, :] / filters[each, top, left][:, None]
        off = (filters - column[:, :, None] * row[:, None, :]).abs().flatten(1).amax(1)
        if not bool((off <= 4 * torch.finfo(weight.dtype).eps * largest).all()):
            return None
        return column[:, None, :, None], row[:, None, None, :]
