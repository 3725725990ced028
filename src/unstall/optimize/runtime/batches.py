"""Calls a model for many items at once and gives its outputs one by one."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch


class _Batches:
    """A model that is called for many items at once, and its outputs one by one.

    ``call``: the model. ``size``: items in a call. ``stacked``: an input is one item, without a dimension of items.
    """

    def __init__(self, call: Callable[..., Any], size: int, *, stacked: bool = False) -> None:
        self.call, self.size, self.stacked = call, size, stacked

    def each(self, items: Iterable[Any], inputs_of: Callable[[list[Any]], Iterable[Any]]) -> Iterator[Any]:
        """What ``inputs_of`` keeps of each item, and the model's output for it."""
        items = iter(items)
        while chunk := list(itertools.islice(items, self.size)):
            needed, inputs = [], []
            for names, values in inputs_of(chunk):
                needed.append(names)
                inputs.append(values)
            yield from zip(needed, self.outputs(inputs))

    def outputs(self, inputs: list[Any]) -> list[Any]:
        """The model's outputs: one call for all inputs of the same type and shape."""
        alike: Any = {}
        outputs: list[Any] = [None] * len(inputs)
        for number, values in enumerate(inputs):
            kind = tuple([(value.dtype, value.shape if self.stacked else value.shape[1:]) for value in values])
            alike.setdefault(kind, []).append(number)
        for numbers in alike.values():
            together = self.call(*[self.join(column) for column in zip(*[inputs[number] for number in numbers])])
            counts = [1 if self.stacked else len(inputs[number][0]) for number in numbers]
            for number, output in zip(numbers, self.parts(together, counts)):
                outputs[number] = output
        return outputs

    def join(self, values: Any) -> Any:
        """The inputs for many items in one."""
        if isinstance(values[0], torch.Tensor):
            return torch.stack(values) if self.stacked else torch.cat(values)
        numpy = sys.modules["numpy"]
        return numpy.stack(values) if self.stacked else numpy.concatenate(values)

    def parts(self, output: Any, counts: list[int]) -> Any:
        """What is for each item in an output for many."""
        if isinstance(output, dict):
            columns = [self.parts(value, counts) for value in output.values()]
            return [type(output)(zip(output, row)) for row in zip(*columns)]
        if isinstance(output, (tuple, list)):
            return [type(output)(row) for row in zip(*[self.parts(value, counts) for value in output])]
        if self.stacked:
            return output.unbind() if self.is_plain(output) else [output[at] for at in range(len(output))]
        if self.is_plain(output):
            return output.split(counts)
        return [output[end - count : end] for count, end in zip(counts, itertools.accumulate(counts))]

    @staticmethod
    def is_plain(output: Any) -> bool:
        """Whether it is a tensor that no gradient goes through: its views may be changed in place."""
        return isinstance(output, torch.Tensor) and not output.requires_grad
