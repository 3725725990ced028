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


class _Held:
    """What an object holds: its attributes, the entries of short containers, and what these hold, three levels down."""

    def __init__(self, owner: Any) -> None:
        self.parts: list[tuple[Any, Any, list[Any]]] = []
        self.sizes: list[tuple[Any, int]] = []
        self.versions: list[tuple[Any, int]] = []
        self.add(owner, 3)

    def add(self, owner: Any, depth: int) -> None:
        if isinstance(owner, torch.Tensor):
            if not owner.is_inference():
                self.versions.append((owner, owner._version))
            return
        container = owner
        if not isinstance(owner, (list, tuple, dict, set)):
            container = getattr(owner, "__dict__", None)
            if not isinstance(container, dict) or isinstance(owner, (type(sys), _WatchedSamples)):
                return
        elif len(owner) > 32:
            self.sizes.append((owner, len(owner)))
            return
        values = container.values if isinstance(container, dict) else container.__iter__
        parts = list(values())
        self.parts.append((container, values, parts))
        for part in parts:
            if depth and len(self.parts) < 500 and not isinstance(part, (int, float, str, bytes, type(None))):
                self.add(part, depth - 1)

    def is_as_it_was(self) -> bool:
        """Whether all of it is still there, and nothing else; arrays that are written in place look the same."""
        for container, values, parts in self.parts:
            if len(container) != len(parts) or not all(map(operator.is_, values(), parts)):
                return False
        sizes = all(len(container) == size for container, size in self.sizes)
        return sizes and all(tensor._version == version for tensor, version in self.versions)


class _WatchedSamples:
    """Samples of one dataset as they were first made, up to a gigabyte; each is given as a copy.

    One whose making draws random numbers is not kept, and all are dropped when the dataset, or what it holds, is set
    otherwise. Arrays that are written in place, and generators of its own, are not seen.
    """

    def __init__(self) -> None:
        self.kept: dict[Any, bytes] = {}
        self.bytes = self.changes = 0
        self.held: Any = None

    @classmethod
    def get(cls, dataset: Any, make: Callable[[Any], Any], index: Any) -> Any:
        """What ``make(index)`` gives."""
        attributes = getattr(dataset, "__dict__", {})  # written there, a frozen dataclass can have it too
        samples = attributes.get("samples_kept")
        if samples is None:
            samples = attributes["samples_kept"] = cls()
        return samples.sample(dataset, make, index)

    def __reduce__(self) -> Any:
        """A copy of the dataset begins anew."""
        return type(self), ()

    def sample(self, dataset: Any, make: Callable[[Any], Any], index: Any) -> Any:
        is_number = hasattr(index, "__index__") and (not isinstance(index, torch.Tensor) or index.ndim == 0)
        if self.changes > 100 or not is_number or torch.utils.data.get_worker_info() is not None:
            return make(index)
        key = type(index), int(index)
        if self.held is None or not self.held.is_as_it_was():
            self.kept.clear()
            self.bytes = 0
            self.changes += 1
        elif key in self.kept:
            return pickle.loads(self.kept[key])
        before = self.generators()
        sample = make(index)
        self.held = _Held(dataset)  # what the making itself leaves there is made anew each time
        if self.generators() == before and self.bytes < 1 << 30 and len(self.held.parts) < 500:
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

    @staticmethod
    def generators() -> Any:
        """The states of the random generators that programs share."""
        numpy = sys.modules.get("numpy")
        arrays = numpy.random.get_state()[1:3] if numpy else (b"", 0)
        return random.getstate(), bytes(arrays[0]), arrays[1], bytes(torch.get_rng_state().numpy())
