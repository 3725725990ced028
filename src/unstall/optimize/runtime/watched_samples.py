"""Keeps samples in memory for as long as nothing that their dataset holds changes."""

from __future__ import annotations

import io
import operator
import pickle
import random
import sys
from collections.abc import Callable
from typing import Any

import torch

from unstall.optimize.runtime.sample_pickler import _SamplePickler


class _WatchedSamples:
    """Samples of one dataset as they were first made, up to a gigabyte; each is given as a copy.

    One whose making draws random numbers is not kept, and all are dropped when the dataset, or what it holds, is set
    otherwise. Arrays that are written in place, and generators of its own, are not seen.
    """

    def __init__(self) -> None:
        self.kept: dict[Any, bytes] = {}
        self.bytes = self.changes = 0
        self.held: tuple[list[Any], list[int]] = ([], [])

    @classmethod
    def get(cls, dataset: Any, make: Callable[[Any], Any], index: Any) -> Any:
        """What ``make(index)`` gives."""
        attributes = getattr(dataset, "__dict__", {})  # written there, a frozen dataclass can have it too
        return attributes.setdefault("samples_kept", cls()).sample(dataset, make, index)

    def __reduce__(self) -> Any:
        """A copy of the dataset begins anew."""
        return type(self), ()

    def sample(self, dataset: Any, make: Callable[[Any], Any], index: Any) -> Any:
        is_number = hasattr(index, "__index__") and (not isinstance(index, torch.Tensor) or index.ndim == 0)
        if self.changes > 100 or not is_number or torch.utils.data.get_worker_info() is not None:
            return make(index)
        key = type(index), int(index)
        if not self.is_changed(dataset) and key in self.kept:
            return pickle.loads(self.kept[key])
        before = self.generators()
        sample = make(index)
        if self.generators() == before and not self.is_changed(dataset) and self.bytes < 1 << 30:
            self.keep(key, sample)
        return sample

    def keep(self, key: Any, sample: Any) -> None:
        file = io.BytesIO()
        try:
            _SamplePickler(file, pickle.HIGHEST_PROTOCOL).dump(sample)
        except Exception:  # whatever it holds cannot be written: such samples are made each time
            self.changes += 1
            return
        self.kept[key] = file.getvalue()
        self.bytes += len(self.kept[key])

    def is_changed(self, dataset: Any) -> bool:
        """Whether the dataset holds anything else than when this was last asked."""
        objects: list[Any] = []
        numbers: list[int] = []
        self.hold(dataset, objects, numbers, 3)
        if len(objects) > 1000:  # too much to watch over
            self.changes = 1000
            return True
        old, old_numbers = self.held
        if len(objects) == len(old) and numbers == old_numbers and all(map(operator.is_, objects, old)):
            return False
        self.held = objects, numbers  # they are held: no other object gets the place of one of them
        self.kept.clear()
        self.bytes = 0
        self.changes += 1
        return True

    def hold(self, value: Any, objects: list[Any], numbers: list[int], depth: int) -> None:
        """Add all that a value holds: its attributes, the entries of short containers, and the same of these."""
        if isinstance(value, (list, tuple, dict, set)):
            numbers.append(len(value))
            inner = (value.values() if isinstance(value, dict) else value) if len(value) <= 32 else ()
        elif isinstance(value, torch.Tensor):
            inner = ()
            if not value.is_inference():
                numbers.append(value._version)
        else:
            inner = () if isinstance(value, (type, type(sys))) else getattr(value, "__dict__", {}).values()
        for part in inner:
            if part is self:
                continue
            objects.append(part)
            if depth and not isinstance(part, (int, float, str, bytes, type(None))) and len(objects) <= 1000:
                self.hold(part, objects, numbers, depth - 1)

    @staticmethod
    def generators() -> Any:
        """The states of the random generators that programs share."""
        numpy = sys.modules.get("numpy")
        arrays = numpy.random.get_state()[1:3] if numpy else (b"", 0)
        return random.getstate(), bytes(arrays[0]), arrays[1], bytes(torch.get_rng_state().numpy())
