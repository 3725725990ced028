"""Recorded answers: what a function returned before, given again. Standard library only; torch if the program has it.

An answer given again must not differ from a fresh one in anything that the program's time depends on. So what the
caller changes in place is copied before it is given, and a tensor that gradients flow through is given with a way for
them to flow on: to the call's own inputs, as zeros.
"""

from __future__ import annotations

import collections
import itertools
import pickle
import sys
import types
from time import perf_counter
from typing import TYPE_CHECKING, Any

from unstall.child.experiments import gradients, limits

if TYPE_CHECKING:
    from collections.abc import Callable

    Give = Callable[[tuple[Any, ...], dict[str, Any]], Any]
    """Called with the arguments of a call, gives its answer, safe for the caller to change."""


class CannotReplay(Exception):
    """Calls of this function cannot be answered from a record; the message says why."""


class Sites:
    """The rings of one function, a ring for each place it is called from."""

    def __init__(self, new_ring: Callable[[], Ring], most: int = limits.MOST_SITES) -> None:
        self.new_ring, self.most = new_ring, most
        self.rings: dict[int, list[tuple[types.CodeType | None, Ring]]] = collections.defaultdict(list)
        """Recorded answers by the offset of the call in its code: a code's hash, and its id(), take too long."""
        self.count = 0

    def ring(self, frame: types.FrameType | None) -> Ring:
        """The ring of the call site that this frame stands at; None: a call that no Python code makes."""
        code, offset = (None, -1) if frame is None else (frame.f_code, frame.f_lasti)
        for site, ring in self.rings[offset]:
            if site is code:
                return ring
        return self._add(code, offset)

    def _add(self, code: types.CodeType | None, offset: int) -> Ring:
        if self.count == self.most:
            return next(ring for rings in self.rings.values() for _, ring in rings)
        self.count += 1
        ring = self.new_ring()
        self.rings[offset].append((code, ring))
        return ring


class Ring:
    """The first answers at one call site, given again in turn."""

    def __init__(self, size: int = limits.ANSWERS, collecting_s: float = limits.COLLECTING_S) -> None:
        self.size, self.collecting_s = size, collecting_s
        self.answers: list[Give] = []
        self.ready = False
        """Whether there are as many answers as it takes."""
        self.answer: Give = self._not_ready
        """Gives the next recorded answer."""
        self.own_s = 0.0
        """Seconds that an answer takes: a function that is free takes none."""
        self.answered = 0
        """Calls of the program that were answered so far."""
        self._began = perf_counter()
        self._bytes = 0

    def record(self, value: Any) -> None:
        """Keep an answer. Raises CannotReplay where it is one that is used up."""
        self.answers.append(giver(value))
        count = len(self.answers)
        self._bytes += _size(value)
        full = count >= limits.MOST_ANSWERS or self._bytes > limits.MOST_ANSWER_BYTES
        if count >= self.size and (full or perf_counter() - self._began > self.collecting_s):
            next_answer = itertools.cycle(self.answers).__next__

            def answer(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
                self.answered += 1
                return next_answer()(args, kwargs)

            self.answer, self.ready = answer, True

    def time(self, call: Callable[[], Any]) -> None:
        """Measure how long an answer takes, by calls that are none of the program's: the median of some."""
        began, times = perf_counter(), []
        while perf_counter() - began < limits.TIMING_S:
            before = perf_counter()
            for _ in range(limits.TIMED_TOGETHER):
                call()
            times.append((perf_counter() - before) / limits.TIMED_TOGETHER)
            self.answered -= limits.TIMED_TOGETHER
        self.own_s = sorted(times)[len(times) // 2]

    @staticmethod
    def _not_ready(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise LookupError("not enough answers are recorded yet")


def giver(value: Any) -> Give:
    """Gives a return value again, each time safe for the caller to change.

    Raises CannotReplay for a value that is used up by whoever reads it.
    """
    give = _copying(value, limits.DEPTH)
    if give is None:
        return lambda args, kwargs: value
    if _is_nested(value) and _is_plain_data(value, limits.DEPTH):
        packed = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        return lambda args, kwargs: pickle.loads(packed)
    return give


def _copying(value: Any, depth: int) -> Give | None:
    """Gives copies of what the caller can change in the value; None where that is nothing."""
    if isinstance(value, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)):
        raise CannotReplay("it returns a generator, which is used up by whoever reads it")
    if hasattr(value, "__next__"):
        raise CannotReplay(f"it returns an iterator ({type(value).__name__}), which is used up by whoever reads it")
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return _StoredTensor(value).give
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _copy_of(value) if value.ndim else None
    if depth and isinstance(value, dict):
        return _copying_dict(value, depth)
    if depth and (type(value) in (tuple, list) or (isinstance(value, tuple) and hasattr(value, "_fields"))):
        return _copying_sequence(value, depth)
    if isinstance(value, (set, bytearray, collections.deque)):
        return _copy_of(value.copy())
    return None


def _copy_of(stored: Any) -> Give:
    return lambda args, kwargs: stored.copy()


def _copying_dict(value: dict[Any, Any], depth: int) -> Give:
    stored = value.copy()
    inner = {key: give for key, item in value.items() if (give := _copying(item, depth - 1)) is not None}

    def give_dict(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        mapping = stored.copy()
        for key, give in inner.items():
            mapping[key] = give(args, kwargs)
        return mapping

    return give_dict if inner else _copy_of(stored)


def _copying_sequence(value: Any, depth: int) -> Give | None:
    inner = [_copying(item, depth - 1) for item in value]
    kind = type(value)
    if not any(inner):
        return _copy_of(value.copy()) if kind is list else None
    pairs = list(zip(value, inner))

    def give_sequence(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        items = [item if give is None else give(args, kwargs) for item, give in pairs]
        return kind(*items) if hasattr(kind, "_fields") else kind(items)

    return give_sequence


def _is_nested(value: Any) -> bool:
    items = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
    return any(type(item) in (list, tuple, dict) for item in items)


class _StoredTensor:
    """A tensor as it was returned: its values, whether gradients flowed, and its version, to see it changed."""

    def __init__(self, tensor: Any):
        self.grad = bool(tensor.requires_grad)
        self.leaf = bool(tensor.is_leaf)
        self.data = tensor.detach()
        self.version = None if self.data.is_inference() else self.data._version

    def give(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.version is None:  # whether it was changed in place cannot be seen, and backward takes no such tensor
            return self.data.clone()
        if self.data._version != self.version:  # the caller works in place: keep ours from now on
            self.data = self.data.clone()
            self.version = self.data._version
            data = self.data.clone()
        else:
            data = self.data
        if self.grad and not self.leaf:
            return gradients.through(data, args, kwargs)
        return data.requires_grad_() if self.grad else data.detach()


_SCALARS = frozenset({type(None), bool, int, float, str, bytes})
"""What holds nothing else, no gradients either."""


def _is_plain_data(value: Any, depth: int) -> bool:
    """Whether it is made of numbers and text in lists, tuples and dicts: unpacking that is ten times as quick."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is dict:
        scalar_keys = all(type(key) in _SCALARS for key in value)
        return scalar_keys and depth > 0 and all(_is_plain_data(item, depth - 1) for item in value.values())
    return kind in (list, tuple) and depth > 0 and all(_is_plain_data(item, depth - 1) for item in value)


def _size(value: Any, depth: int = limits.DEPTH) -> int:
    """Bytes, as far as they are told: of arrays, tensors, strings, and what holds such."""
    if depth and type(value) in (tuple, list):
        return sum(_size(item, depth - 1) for item in value)
    if depth and isinstance(value, dict):
        return sum(_size(item, depth - 1) for item in value.values())
    return int(getattr(value, "nbytes", 0)) or sys.getsizeof(value, 0)
