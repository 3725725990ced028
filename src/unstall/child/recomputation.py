"""Which operators are given what they were given before, and so compute again what is known. In the user's process.

Tensors are told apart by their contents: a copy is as good as the original, and what was written to in place is not.
Their bytes are read from memory, because the program's modes and profilers would see an operator. A sparse tensor,
which has several stretches of it, is known by the object that it is and by what comes of it.
"""

from __future__ import annotations

import functools
import itertools
import sys
import weakref
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from unstall.child import reading

_SCALARS = (int, float, complex, bool, str, type(None))
_CONSTANTS = ("dtype", "layout", "device", "memory_format")
"""Classes of torch whose instances stand for themselves."""
_FAR_MORE = 4
_UNWRITTEN = ("empty", "new_empty")
"""Names of operators whose results nobody has written yet."""


class Unknown(Exception):
    """Two values cannot be told to be the same: no memory of their own, on a device, or too large to be read."""


class Call(NamedTuple):
    """An operator, what it was given, and what it returned."""

    func: Any
    args: Any
    kwargs: Any
    out: Any


class Contents:
    """Checksums of the memory of tensors, each storage read once as long as nobody writes to it."""

    def __init__(self, torch: Any, *, most_bytes: int = 1 << 28, budget_bytes: int = 4 << 30):
        """``most_bytes``: of a storage that is read; ``budget_bytes``: of all that is read (a second, at 4 GB/s)."""
        self._torch = torch
        self._tensors = (torch.Tensor, torch.nn.Parameter)
        self._sequences = (tuple, list, torch.Size)
        self._constants = tuple(getattr(torch, name) for name in _CONSTANTS)
        self._met_sparse = False
        self._objects: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._numbers = itertools.count(1)
        self._most_bytes = most_bytes
        self._left = budget_bytes
        self._known: dict[int, dict[tuple[int, int], tuple[int, int]]] = {}
        """By a storage's address, then by address and size of a part of its memory: version and checksum.

        Another storage may lie at that address later; that is why what is found is read again.
        """

    def key(self, call: Call, *, anew: bool = False) -> Hashable:
        """Equal for calls that compute the same. Unknown where that cannot be told.

        Args:
            call: of an operator that is no other where it is called again: see :func:`is_repeatable`.
            anew: read the memory again: somebody may have written to it past torch, or it is another's by now.
        """
        with reading.unobserved():
            self._met_sparse = False
            given = call.func, self._of(call.args, anew), self._of(call.kwargs, anew)
            return (*given, self._of(call.out, anew)) if self._met_sparse else given

    def _of(self, value: Any, anew: bool) -> Hashable:
        kind = type(value)
        if kind in self._tensors:
            return self._of_tensor(value, anew)
        if kind in _SCALARS:
            return kind, value
        if kind in self._sequences:
            return tuple(self._of(each, anew) for each in value)
        if kind is dict:
            return tuple((name, self._of(each, anew)) for name, each in value.items())
        if kind in self._constants:
            return value
        raise Unknown

    def _of_tensor(self, tensor: Any, anew: bool) -> Hashable:
        if tensor.device.type != "cpu":
            raise Unknown
        if reading.is_sparse(tensor):
            return self._of_sparse(tensor)
        if not reading.is_dense(tensor):
            raise Unknown
        if not tensor.numel():
            return tuple(tensor.shape), tensor.dtype
        storage = tensor.untyped_storage()
        flags = tensor.is_conj(), tensor.is_neg()
        layout = tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype
        return layout, flags, self._checksum(tensor, storage, anew)

    def _of_sparse(self, tensor: Any) -> Hashable:
        """The object, and how often torch wrote to it; what is written past that shows in what comes of it."""
        self._met_sparse = True
        reference, number = self._objects.get(id(tensor), (None, 0))
        if reference is None or reference() is not tensor:  # another one had this address
            number = next(self._numbers)
            self._objects[id(tensor)] = weakref.ref(tensor), number
        return "sparse", number, -1 if tensor.is_inference() else tensor._version

    def _checksum(self, tensor: Any, storage: Any, anew: bool) -> int:
        part = start, size = self._part(tensor, storage)
        version = -1 if tensor.is_inference() else tensor._version
        of_storage = self._known.setdefault(storage._cdata, {})
        known_version, checksum = of_storage.get(part, (None, 0))
        if known_version == version and not anew:
            return checksum
        if size > self._most_bytes or size > self._left:
            raise Unknown
        import ctypes  # torch has imported both already
        import zlib

        self._left -= size
        checksum = zlib.crc32((ctypes.c_char * size).from_address(start))
        of_storage[part] = version, checksum
        return checksum

    def _part(self, tensor: Any, storage: Any) -> tuple[int, int]:
        """Address and size of what is read for a tensor: all of its storage, unless that is far more than its own."""
        each, whole = tensor.element_size(), storage.nbytes()
        base = self._torch._C._data_address(tensor)  # of the storage; asking the tensor may copy it
        extent = each * (1 + sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride())))
        if extent * _FAR_MORE < whole:
            return base + tensor.storage_offset() * each, extent
        return base, whole

    def forget_written(self, call: Call) -> None:
        """An operator has made tensors, or written to some: inference tensors have no version that would tell."""
        with reading.unobserved():
            for place, name in _written(call.func):
                self._forget(call.args[place] if place < len(call.args) else call.kwargs.get(name))
            if _makes(call.func):
                self._forget(call.out)

    def _forget(self, value: Any) -> None:
        for tensor in value if type(value) in self._sequences else (value,):
            if reading.is_dense(tensor):
                self._known.pop(tensor.untyped_storage()._cdata, None)


@functools.cache
def _written(func: Any) -> list[tuple[int, str]]:
    """Places and names of the arguments that an operator writes to."""
    arguments = enumerate(func._schema.arguments)
    return [(place, each.name) for place, each in arguments if each.alias_info is not None and each.alias_info.is_write]


@functools.cache
def _makes(func: Any) -> bool:
    """Whether what an operator returns is in memory of its own."""
    returns = func._schema.returns
    return bool(returns) and all(value.alias_info is None for value in returns)


@functools.cache
def is_repeatable(func: Any) -> bool:
    """Whether an operator computes something new of its arguments alone: no view, nothing in place or random."""
    if not _makes(func) or _written(func):
        return False
    is_random = sys.modules["torch"].Tag.nondeterministic_seeded in func.tags
    return not is_random and not func.overloadpacket.__name__.startswith(_UNWRITTEN)


@dataclass
class Work:
    """What one line of the program has operators compute, by one way to reach it. Seconds."""

    computed_s: float = 0.0
    """By operators that can be told to be given the same."""
    recurring_s: float = 0.0
    """Of that, what is computed more than once, the first time too."""
    again_s: float = 0.0
    """Of that, what was computed before."""
    again: int = 0
    """Operators that took it."""

    def forget(self) -> None:
        """Count anew what was computed before: in a first cycle little can have been."""
        self.again_s, self.again = 0.0, 0


@dataclass
class RepeatedCalls:
    """The work of the operators of one thread by line; ``contents`` tells when two are given the same."""

    contents: Contents
    most_calls: int = 50_000
    _first: dict[Hashable, tuple[Work, float] | None] = field(default_factory=dict)
    """By call: the work it was done for first, and its seconds; None once it was done again."""

    def add(self, call: Call, seconds: float, work: Work) -> None:
        """An operator has run, outside of backward: what is computed again there is meant to be, to save memory."""
        try:
            self.contents.forget_written(call)
            if not is_repeatable(call.func):
                return
            key = self.contents.key(call)
            if key in self._first and self.contents.key(call, anew=True) != key:
                return  # somebody wrote to it past torch
        except (Unknown, RuntimeError):  # torch raises it for a stand-in that has no memory
            return
        work.computed_s += seconds
        if key not in self._first:
            if len(self._first) < self.most_calls:
                self._first[key] = (work, seconds)
            return
        first = self._first[key]
        if first is not None:
            earlier, earlier_s = first
            earlier.recurring_s += earlier_s
            self._first[key] = None
        work.recurring_s += seconds
        work.again_s += seconds
        work.again += 1


def of_this_torch() -> RepeatedCalls | None:
    """None where torch is too old."""
    torch = sys.modules["torch"]
    try:
        return RepeatedCalls(Contents(torch)) if torch._C._data_address else None
    except AttributeError:
        return None
