"""Prove that a model may be called for many items at once: it is called for each item alone as well, and compared.

The patch's class ``_Batches`` is met where it is defined. Of every few items, the outputs are first computed together,
unseen by the clock and the observer. Then, when an item's turn comes, what goes into the model is made again from it:
that must be what it was, so nothing that came between may matter. The model's output for it alone, which is counted
and observed as in the original, must be close to the one that the program gets.
"""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING, Any

from unstall.optimize import child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_TOGETHER = 4  # items: few, so that what is computed ahead of the last observed step is little


def check_class(cls: Any, report: Callable[[str], None], tolerances: Mapping[str, float]) -> None:
    """Check what the patch's class does from now on; ``report`` gets what is wrong."""
    cls.each = _checked(report, tolerances)


def _checked(report: Callable[[str], None], tolerances: Mapping[str, float]) -> Any:
    def each(self: Any, items: Any, inputs_of: Any) -> Iterator[Any]:
        source = iter(items)
        while chunk := list(itertools.islice(source, min(self.size, _TOGETHER))):
            with child.Unseen():
                ahead = [list(inputs_of([item])) for item in chunk]
                outputs = iter(self.outputs([inputs for pairs in ahead for _, inputs in pairs]))
            for item, pairs in zip(chunk, ahead):
                with child.Unseen():
                    again = list(inputs_of([item]))
                if not alike([inputs for _, inputs in pairs], [inputs for _, inputs in again], {}):
                    report("what goes into the model depends on what was done with the items before")
                for names, inputs in again:
                    output = next(outputs)
                    if not alike(self.call(*inputs), output, tolerances):
                        report("the model's output for many items at once is not that for each of them")
                    yield names, output

    return each


def alike(a: Any, b: Any, tolerances: Mapping[str, float]) -> bool:
    """Whether two values are the same, tensors and arrays within the tolerance for their data type."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key], tolerances) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(alike(x, y, tolerances) for x, y in zip(a, b))
    if not (hasattr(a, "dtype") and hasattr(a, "shape")):
        return bool(a == b)
    torch: Any = sys.modules["torch"]
    x, y = torch.as_tensor(a).detach(), torch.as_tensor(b).detach()
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    allowed = tolerances.get(str(x.dtype).removeprefix("torch."), 0.0)
    if torch.equal(x, y) or not allowed:
        return bool(torch.equal(x, y))
    x, y = x.double(), y.double()
    return bool((x - y).square().mean().sqrt() <= allowed * x.square().mean().sqrt())
