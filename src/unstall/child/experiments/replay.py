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
    from collections.abc import Callable, Iterable

    Give = Callable[[tuple[Any, ...], dict[str, Any]], Any]
    """Called with the arguments of a call, gives its answer, safe for the caller to change."""


class CannotReplay(Exception):
    """Calls of this function cannot be answered from a record; the message says why."""


class Sites:
    """The rings of one function, a ring for each place it is called from."""

    def __init__(self, new_ring: Callable[[], Ring], most: int = limits.MOST_SITES) -> None:
        self.new_ring, self.most = new_ring, most
        self.rings: dict[int, list[tuple[types.CodeType | None, Ring]]] = collections.defaultdict(list)
        """By the offset of the call in its code: a code's hash, and its id(), take longer than all the rest."""
        self.count = 0

    def ring(self, frame: types.FrameType | None) -> Ring:
        """The ring of the call site that this frame stands at; None: a call that no Python code makes."""
        code, offset = (None, -1) if frame is None else (frame.f_code, frame.f_lasti)
        for known, ring in self.rings[offset]:
            if known is code:
                return ring
        return self._add(code, offset)

    def _add(self, code: types.CodeType | None, offset: int) -> Ring:
        if self.count == self.most:
            return next(ring for known in self.rings.values() for _, ring in known)
        self.count += 1
        ring = self.new_ring()
        self.rings[offset].append((code, ring))
        return ring


class Ring:
    """The first answers at one call site, given again in turn."""

    def __init__(self, size: int = limits.ANSWERS, collecting_s: float = limits.COLLECTING_S) -> None:
        self.size, self.collecting_s = size, collecting_s
        self.answers: list[Answer] = []
        self.seconds = 0.0
        """Mean duration of the calls recorded."""
        self.ready = False
        """Whether there are as many answers as it takes."""
        self.answer: Give = self._not_ready
        """The next recorded answer, as :meth:`Answer.give`."""
        self._began = perf_counter()
        self._bytes = 0

    def record(self, value: Any, seconds: float) -> None:
        """Keep an answer. Raises CannotReplay where it is one that is used up."""
        self.answers.append(Answer(value))
        count = len(self.answers)
        self.seconds += (seconds - self.seconds) / count
        self._bytes += _size(value)
        full = count >= limits.MOST_ANSWERS or self._bytes > limits.MOST_ANSWER_BYTES
        if count >= self.size and (full or perf_counter() - self._began > self.collecting_s):
            self.answer = self.in_turn()
            self.ready = True

    def in_turn(self) -> Give:
        """Gives one after the other, again and again; as quick as can be where all are given in the same way."""
        ways = {answer.how for answer in self.answers}
        if ways == {_PACKED}:
            packed = itertools.cycle([answer.value for answer in self.answers]).__next__
            return lambda args, kwargs: pickle.loads(packed())
        if _REBUILT in ways or len(ways) > 1:
            following = itertools.cycle(self.answers).__next__
            return lambda args, kwargs: following().give(args, kwargs)
        value = itertools.cycle([answer.value for answer in self.answers]).__next__
        return (lambda args, kwargs: value()) if ways == {_AS_IS} else (lambda args, kwargs: value().copy())

    @staticmethod
    def _not_ready(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise LookupError("not enough answers are recorded yet")


class Answer:
    """One recorded return value."""

    def __init__(self, value: Any):
        self.value, self.how = _store(value, limits.DEPTH)
        if self.how is _REBUILT and _is_plain_data(value, limits.DEPTH):
            self.value, self.how = pickle.dumps(value, pickle.HIGHEST_PROTOCOL), _PACKED

    def give(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value, safe for the caller to change."""
        if self.how is _AS_IS:
            return self.value
        if self.how is _PACKED:
            return pickle.loads(self.value)
        return self.value.copy() if self.how is _COPIED else _give(self.value, args, kwargs)


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


_AS_IS, _COPIED, _PACKED, _REBUILT = "as it is", "copied", "packed", "rebuilt"
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


def _store(value: Any, depth: int) -> tuple[Any, str]:
    """What to store of a value, and how it is given: the cheapest way that leaves what is stored as it is."""
    if isinstance(value, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)):
        raise CannotReplay("it returns a generator, which is used up by whoever reads it")
    if hasattr(value, "__next__"):
        raise CannotReplay(f"it returns an iterator ({type(value).__name__}), which is used up by whoever reads it")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _StoredTensor(value), _REBUILT
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value, _COPIED if value.ndim else _AS_IS
    if depth and type(value) in (tuple, list):
        stored, ways = _store_all(value, depth)
        if ways - {_AS_IS}:
            return type(value)(stored), _REBUILT
        return (value, _AS_IS) if type(value) is tuple else (stored, _COPIED)
    if depth and isinstance(value, dict):
        stored, ways = _store_all(value.values(), depth)
        mapping = value.copy()
        mapping.update(zip(value, stored))
        return mapping, _REBUILT if ways - {_AS_IS} else _COPIED
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*_store_all(value, depth)[0]), _REBUILT
    if isinstance(value, (set, bytearray, collections.deque)):
        return value.copy(), _COPIED
    return value, _AS_IS


def _store_all(values: Iterable[Any], depth: int) -> tuple[list[Any], set[str]]:
    pairs = [_store(value, depth - 1) for value in values]
    return [stored for stored, _ in pairs], {how for _, how in pairs}


def _size(value: Any, depth: int = limits.DEPTH) -> int:
    """Bytes, as far as they are told: of arrays, tensors, strings, and what holds such."""
    if depth and type(value) in (tuple, list):
        return sum(_size(item, depth - 1) for item in value)
    if depth and isinstance(value, dict):
        return sum(_size(item, depth - 1) for item in value.values())
    return int(getattr(value, "nbytes", 0)) or sys.getsizeof(value, 0)


def _give(value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if isinstance(value, _StoredTensor):
        return value.give(args, kwargs)
    if type(value) in (tuple, list):
        return type(value)(_give(item, args, kwargs) for item in value)
    if isinstance(value, dict):
        mapping = value.copy()
        for key, item in value.items():
            mapping[key] = _give(item, args, kwargs)
        return mapping
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_give(item, args, kwargs) for item in value))
    if isinstance(value, (set, bytearray, collections.deque)):
        return value.copy()
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value.copy()
    return value
