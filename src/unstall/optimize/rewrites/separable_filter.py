"""Convolutions that filter each channel by itself, and the same along one axis after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from unstall.optimize.source.handed_calls import calls_in, handed_to
from unstall.optimize.source.module import SourceModule

_CONVOLUTIONS = frozenset(("torch.nn.functional.conv2d", "torch.conv2d"))
_GROUPS = 6
"""Place of the argument."""


def channel_filters(module: SourceModule, part: cst.FunctionDef | cst.Module) -> Iterator[cst.Call]:
    """The calls in a function, or at the top level, that may filter each channel of an image by itself."""

    def filters_channels(call: cst.Call) -> bool:
        has_groups = len(call.args) > _GROUPS or any(
            argument.keyword is not None and argument.keyword.value == "groups" for argument in call.args
        )
        return has_groups and not any(arg.star for arg in call.args) and module.name(call.func) in _CONVOLUTIONS

    return calls_in(module, part, filters_channels)


def by_axes(module: SourceModule, calls: Sequence[cst.Call]) -> cst.Module:
    """The tree with these calls. Raises NameTaken where the file's names are in the way."""
    return handed_to(module, calls, "_SeparableFilter.apply", "separable_filter")
