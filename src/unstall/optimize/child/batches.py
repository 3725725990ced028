"""Prove that a model may be called for many items at once: it is called for each item alone as well, and compared.

The patch's class ``_Batches`` is met where it is defined. Of every few items, the outputs are first computed together,
unseen by the clock and the notes. Then, when an item's turn comes, what goes into the model is made again from it: that
must be what it was, so nothing that came between may matter. The model's output for it alone, which is counted and
noted as in the original, must be close to the one that the program gets.
"""

from __future__ import annotations

import builtins
import itertools
import sys
from typing import TYPE_CHECKING, Any

from unstall.optimize import child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

CLASS = "_Batches"
_TOGETHER = 4  # items: few, so that what is computed ahead of the last noted step is little


def watch(tell: Callable[[str], None], tolerances: Mapping[str, float]) -> None:
    """From now on, check the class of that name in whatever module it is defined."""
    original = builtins.__build_class__

    def build(body: Any, name: str, /, *bases: Any, **keywords: Any) -> Any:
        cls = original(body, name, *bases, **keywords)
        if name == CLASS:
            cls.each = staticmethod(_checked(cls, tell, tolerances))
        return cls

    builtins.__build_class__ = build


def _checked(cls: Any, tell: Callable[[str], None], tolerances: Mapping[str, float]) -> Any:
    def each(items: Any, inputs_of: Any, call: Any, size: int) -> Iterator[Any]:
        source = iter(items)
        while chunk := list(itertools.islice(source, min(size, _TOGETHER))):
            with child.Unseen():
                made = [list(inputs_of([item])) for item in chunk]
                outputs = iter(cls.outputs(call, [inputs for pairs in made for _, inputs in pairs]))
            for item, pairs in zip(chunk, made):
                with child.Unseen():
                    again = list(inputs_of([item]))
                if not alike([inputs for _, inputs in pairs], [inputs for _, inputs in again], {}):
                    tell("what goes into the model depends on what was done with the items before")
                for kept, inputs in again:
                    output = next(outputs)
                    if not alike(call(*inputs), output, tolerances):
                        tell("the model's output for many items at once is not that for each of them")
                    yield kept, output

    return each


def alike(one: Any, other: Any, tolerances: Mapping[str, float]) -> bool:
    """Whether two values are the same, tensors and arrays within the tolerance for their data type."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key], tolerances) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(alike(x, y, tolerances) for x, y in zip(one, other))
    if not (hasattr(one, "dtype") and hasattr(one, "shape")):
        return bool(one == other)
    torch: Any = sys.modules["torch"]
    x, y = torch.as_tensor(one).detach(), torch.as_tensor(other).detach()
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    allowed = tolerances.get(str(x.dtype).removeprefix("torch."), 0.0)
    if torch.equal(x, y) or not allowed:
        return bool(torch.equal(x, y))
    x, y = x.double(), y.double()
    return bool((x - y).square().mean().sqrt() <= allowed * x.square().mean().sqrt())
