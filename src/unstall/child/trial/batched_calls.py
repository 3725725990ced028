"""Prove that a model may be called for many items at once: it is called for each item alone as well, and compared.

The patch's class ``_Batches`` is met where it is defined. Of every few items, the outputs are first computed together,
unseen by the clock and the observer. Then, when an item's turn comes, what goes into the model is made again from it:
that must be what it was, so nothing that came between may matter. The model's output for it alone, which is counted
and observed as in the original, must be the one that the program gets, but for rounding: as far as the model's output
for the item alone moves when weights and inputs are off by one unit in the last place.
"""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING, Any

from unstall.child import trial
from unstall.child.trial.perturb import Perturbation
from unstall.child.trial.seed import Generators

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_TOGETHER = 4  # items: few, so that what is computed ahead of the last observed step is little
_PERTURBED_CALLS = 3


def check_class(cls: Any, report: Callable[[str], None], size: float) -> None:
    """Check what the patch's class does from now on; ``report`` gets what is wrong.

    ``size``: how many times as far as one unit in the last place moves it an output may be.
    """
    cls.each = _checked(report, size)


def _checked(report: Callable[[str], None], size: float) -> Any:
    def each(self: Any, items: Any, inputs_of: Any) -> Iterator[Any]:
        source = iter(items)
        while chunk := list(itertools.islice(source, min(self.size, _TOGETHER))):
            with trial.Unseen():
                ahead = [list(inputs_of([item])) for item in chunk]
                outputs = iter(self.outputs([inputs for pairs in ahead for _, inputs in pairs]))
            for item, pairs in zip(chunk, ahead):
                with trial.Unseen():
                    again = list(inputs_of([item]))
                if not alike([inputs for _, inputs in pairs], [inputs for _, inputs in again]):
                    report("what goes into the model depends on what was done with the items before")
                for names, inputs in again:
                    output, perturbed = next(outputs), perturbed_outputs(self.call, inputs)
                    if not alike(self.call(*inputs), output, perturbed, size):
                        report("the model's output for many items at once is not that for each of them")
                    yield names, output

    return each


def perturbed_outputs(call: Callable[..., Any], inputs: Any) -> list[Any]:
    """What a call gives when weights and inputs are off by one unit in the last place, some times."""
    outputs = []
    for seed in range(_PERTURBED_CALLS):
        with trial.Unseen(), Generators(), Perturbation(seed) as perturbation:
            outputs.append(call(*perturbation.inputs(tuple(inputs))))
    return outputs


def alike(a: Any, b: Any, perturbed: Sequence[Any] = (), size: float = 0.0) -> bool:
    """Whether two values are the same: tensors and arrays in them, as far as rounding goes.

    Args:
        a: a value.
        b: another one.
        perturbed: what ``a`` is when what it comes of is off by one unit in the last place.
        size: how many times as far from ``a`` as those ``b`` may be; 0: not at all.
    """
    parts, others = _parts(a), _parts(b)
    rounded = [parts_of_run for parts_of_run in map(_parts, perturbed) if len(parts_of_run) == len(parts)]
    return len(parts) == len(others) and all(
        _is_alike(x, y, [parts_of_run[index] for parts_of_run in rounded], size)
        for index, (x, y) in enumerate(zip(parts, others))
    )


def _parts(value: Any) -> list[Any]:
    """What is in nested containers, in order, with the containers' own types and keys."""
    if isinstance(value, dict):
        return [type(value), *value, *(part for item in value.values() for part in _parts(item))]
    if isinstance(value, (list, tuple)):
        return [type(value), len(value), *(part for item in value for part in _parts(item))]
    return [value]


def _is_alike(a: Any, b: Any, perturbed: Sequence[Any], size: float) -> bool:
    if type(a) is not type(b):
        return False
    if not (hasattr(a, "dtype") and hasattr(a, "shape")):
        return bool(a == b)
    torch: Any = sys.modules["torch"]
    x, y = torch.as_tensor(a).detach(), torch.as_tensor(b).detach()
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    if torch.equal(x, y) or not size or not x.is_floating_point():
        return bool(torch.equal(x, y))
    rounded = [torch.as_tensor(value).detach() for value in perturbed if getattr(value, "shape", None) == a.shape]
    noise = max([torch.finfo(x.dtype).eps * _size(x), *(_size(x.double() - p.double()) for p in rounded)])
    return bool(_size(x.double() - y.double()) <= size * noise)


def _size(values: Any) -> float:
    """Root mean square."""
    return float(values.double().square().mean().sqrt())
