"""Tensors that a line makes of lists, and the same made by way of NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from unstall.diagnose.vocabulary import TENSOR_CONSTRUCTORS
from unstall.optimize.source.handed_calls import calls_in, handed_to
from unstall.optimize.source.module import SourceModule, number_of

_CONSTRUCTORS = {f"torch.{name}" for name in TENSOR_CONSTRUCTORS}


def listed_tensors(module: SourceModule, part: cst.FunctionDef | cst.Module) -> Iterator[cst.Call]:
    """The calls in a function, or at the top level, that make a tensor of what may be a list when the program runs."""

    def may_read_list(call: cst.Call) -> bool:
        if module.name(call.func) not in _CONSTRUCTORS or not call.args:
            return False
        first, *options = call.args
        by_name = all(option.keyword is not None for option in options)
        return first.keyword is None and not first.star and by_name and number_of(first.value) is None

    return calls_in(module, part, may_read_list)


def by_arrays(module: SourceModule, calls: Sequence[cst.Call]) -> cst.Module:
    """The tree that makes these tensors by way of NumPy. Raises NameTaken where the file's names are in the way."""
    return handed_to(module, calls, "_ListedTensors.make", "listed_tensors")
