"""torch.nn: each outermost ``Module.__call__`` on a thread is one forward.

Wrapped before torch.compile's tracer takes its own reference to ``Module.__call__``, so that compiled programs are
traced exactly as without unstall.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from unstall.child import padding, reading
from unstall.child.recording import seam_ready, wrap_attribute
from unstall.records import vocabulary
from unstall.records.vocabulary import Seam, SeamGroup, Tick

if TYPE_CHECKING:
    from unstall.child.seams import Listener

FORWARD = Seam(
    "~forward",
    phase=vocabulary.FORWARD.name,
    counts=Tick.FORWARD,
    group=SeamGroup.MODULES,
    frames=((r"torch[/\\]nn[/\\]modules[/\\]module\.py$", r"_wrapped_call_impl|_call_impl"),),
)
BATCHES = 8
"""Batches of each model whose size is noted, beside those of a second look."""


def _install(module: Any) -> None:
    seam_ready()
    base = module.Module
    is_alias = base.__dict__.get("_wrapped_call_impl") is base.__call__
    wrap_attribute(base, "__call__", FORWARD, grad=module.torch._C.is_grad_enabled)
    if is_alias:  # the name that the function has: pickle looks for it there
        base._wrapped_call_impl = base.__call__


def _note(listener: Listener, count: int, module: Any, batch: Any) -> None:
    if count == 1:
        listener.emit_fact("root", **_facts(module))
    if count <= BATCHES:
        listener.emit_fact("batch", root=id(module), **batch_facts(module, batch))


def _facts(module: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"id": id(module), "type": type(module).__qualname__}
    count = 0
    tensor = sys.modules["torch"].Tensor
    with reading.unobserved():
        for parameter in reading.parameters(module):
            if not count:
                facts["dtype"] = str(tensor.dtype.__get__(parameter))
                facts["device"] = str(tensor.device.__get__(parameter))
            if not hasattr(type(parameter), "materialize"):  # a lazy module's, which has no size before its first call
                shape = reading.shape(parameter)
                count += math.prod(shape) if shape is not None else 0
    facts["parameters"] = count
    return {**facts, **reading.written_at(module)}


def batch_size(module: Any, batch: Any) -> int | None:
    """How many samples a call of the model is given, by its second argument; None where that cannot be told.

    By the tensor alone: a loop that only infers is asked for it in each call.
    """
    with reading.unobserved():
        _, lengths = _first_tensor(batch)
        along = _along(module, lengths)
    return None if along is None else lengths[along]


def batch_facts(module: Any, batch: Any) -> dict[str, Any]:
    """Of the first tensor in a call's second argument: how many samples it holds, and the shape of one; None without.

    A sample by itself may have no dimension for them. Of rows of tokens, how much of them is padding.
    """
    with reading.unobserved():
        tensor, lengths = _first_tensor(batch)
        along = _along(module, lengths)
        if _is_one_sample(module, tensor, lengths):
            size, sample = 1, lengths
        elif along is None:
            return {"size": None, "sample": None}
        else:
            size, sample = lengths[along], [*lengths[:along], *lengths[along + 1 :]]
        return {"size": size, "sample": sample, **padding.facts(tensor)}


def _first_tensor(batch: Any) -> tuple[Any, list[int]]:
    """The first tensor, or array, in what a model is given, and its shape; None, and no dimension, without."""
    for _ in range(4):
        shape = reading.shape(batch)
        if shape is not None:
            return batch, [int(length) for length in shape]
        batch = _first(batch)
    return None, []


def _along(module: Any, lengths: list[int]) -> int | None:
    """The dimension that the samples lie along: the first, or the second of a recurrent layer that has time first."""
    if len(lengths) < 2:
        return None
    return int(len(lengths) == 3 and reading.attributes(module).get("batch_first") is False)


def _is_one_sample(module: Any, tensor: Any, lengths: list[int]) -> bool:
    """Whether it has the dimensions of one sample, as the model's first weight, (outputs, inputs, ...), has them."""
    kind = sys.modules["torch"].Tensor
    if module is None or not issubclass(type(tensor), kind):
        return False
    if not str(kind.dtype.__get__(tensor)).startswith(("torch.float", "torch.bfloat")):
        return False
    shapes = (reading.shape(parameter) for parameter in reading.parameters(module))
    first = next((shape for shape in shapes if shape is not None and len(shape) > 1), None)
    return first is not None and len(lengths) == len(first) - 1 and lengths[0] == int(first[1])


def _first(batch: Any) -> Any:
    """The first element of a list, tuple or dictionary; None of all else."""
    for base in (list, tuple):
        if issubclass(type(batch), base):
            return base.__getitem__(batch, 0) if base.__len__(batch) else None
    return next(iter(dict.values(batch)), None) if issubclass(type(batch), dict) else None


SEAMS = (FORWARD,)
NOTES = {FORWARD.event: _note}
TARGETS = {"torch.nn.modules.module": _install}
