"""How large one object of the user's program is: kind, length, estimated bytes, autograd graph.

Like :mod:`unstall.child.retention`, which this serves, it runs inside the program: standard
library only, no code of the program's own classes is called, and torch and numpy are used only
where the program has imported them already.
"""

from __future__ import annotations

import array
import contextlib
import functools
import gc
import heapq
import io
import itertools
import sys
import time
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

from unstall.child import reading

SAMPLE = 16
"""Elements looked at to estimate the size of a container; fewer inside an element."""
GRAPH_NODE_LIMIT = 2_000
BLOB_FLOOR = 256
"""Text and byte strings below this many bytes are not worth an entry."""

LRU_CACHE: type = type(functools.lru_cache(lambda: None))
_CONTAINERS: tuple[tuple[Any, str], ...] = (
    (list, "list"),
    (dict, "dict"),
    (set, "set"),
    (deque, "deque"),
    (tuple, "tuple"),
    (frozenset, "frozenset"),
)
_BLOBS: tuple[tuple[Any, str], ...] = (
    (str, "str"),
    (bytes, "bytes"),
    (bytearray, "bytearray"),
    (array.array, "array"),
    (io.BytesIO, "BytesIO"),
    (io.StringIO, "StringIO"),
)
_MEMBER = types.MemberDescriptorType  # what a class has for each of its __slots__

Entry = dict[str, Any]


class Sizer:
    """Measures objects until the deadline (of :func:`time.thread_time`); knows the array libraries in use."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        # An empty tuple is the base class of nothing: the library is not there.
        torch, numpy, pandas = (sys.modules.get(name) for name in ("torch", "numpy", "pandas"))
        self.tensor: Any = getattr(torch, "Tensor", ())
        self._parameter: Any = getattr(getattr(torch, "nn", None), "Parameter", ())
        self._array: Any = getattr(numpy, "ndarray", ())
        self._tables = (getattr(pandas, "DataFrame", None), getattr(pandas, "Series", None))

    def measure(self, value: Any) -> Entry | None:
        """Kind, length, bytes, bound and autograd graph of what can grow; None for the rest."""
        kind = type(value)
        if issubclass(kind, self.tensor):
            return self._measure_tensor(value)
        if issubclass(kind, self._array):
            shape = self._array.shape.__get__(value)
            return _entry("ndarray", shape[0] if shape else 1, self._array_storage(value)[1])
        if kind is LRU_CACHE:
            return self._measure_cache(value)
        if kind in self._tables:
            return _entry(kind.__name__, len(value.index), int(value.memory_usage(index=False).sum()))
        if (base := base_of(kind)) is not None:
            bounded = base is deque and deque.maxlen.__get__(value) is not None
            graph = None if bounded else self._graph_of_elements(value)
            return _entry(dict(_CONTAINERS)[base], length(value), self.estimate(value), bounded, graph)
        for blob, name in _BLOBS:
            if issubclass(kind, blob):
                size = blob.__sizeof__(value)
                return _entry(name, size, size) if size >= BLOB_FLOOR else None
        return None

    def estimate(self, container: Any) -> int:
        """Bytes of a container and its elements, from a sample; what elements share counts once."""
        fresh, _ = self._container_size(container, set(), depth=2)
        return fresh

    # ---------------------------------------------------------------- kinds

    def _measure_tensor(self, value: Any) -> Entry | None:
        if issubclass(type(value), self._parameter) or reading.is_opaque(type(value), self.tensor):
            return None
        shape = self.tensor.shape.__get__(value)
        rows = int(shape[0]) if shape else 1
        return _entry("tensor", rows, self._tensor_storage(value)[1], graph=self._graph(value))

    def _measure_cache(self, value: Any) -> Entry:
        info = value.cache_info()
        entries = next((referent for referent in gc.get_referents(value) if type(referent) is dict), {})
        bounded = info.maxsize is not None
        return _entry("lru_cache", info.currsize, self.estimate(entries), bounded)

    # ---------------------------------------------------------------- bytes

    def _tensor_storage(self, value: Any) -> tuple[Any, int]:
        """What identifies the memory behind a tensor, and its bytes (0: it has none of its own)."""
        try:
            storage = self.tensor.untyped_storage(value)
            return ("storage", storage.data_ptr()), int(storage.nbytes())
        except (RuntimeError, NotImplementedError):  # sparse, fake and functional tensors
            return id(value), 0

    def _array_storage(self, value: Any) -> tuple[Any, int]:
        """The same for an array: a view keeps the whole array that it looks into."""
        while isinstance(base := self._array.base.__get__(value), self._array):
            value = base
        return id(value), int(self._array.nbytes.__get__(value))

    def _size(self, value: Any, counted: set[Any], depth: int) -> tuple[int, int]:
        """Bytes of one element: (not seen before, seen before)."""
        kind = type(value)
        key: Any = id(value)
        size = 0
        if issubclass(kind, self.tensor):
            key, size = (id(value), 0) if reading.is_opaque(kind, self.tensor) else self._tensor_storage(value)
        elif issubclass(kind, self._array):
            key, size = self._array_storage(value)
        if key in counted:
            return 0, size or object.__sizeof__(value)
        counted.add(key)
        if base_of(kind) is not None:
            return self._container_size(value, counted, depth)
        blob = next((base for base, _ in _BLOBS if issubclass(kind, base)), object)
        size += blob.__sizeof__(value)
        shared = 0
        if depth > 0 and kind.__flags__ & _HEAP_TYPE:
            for _, attribute in itertools.islice(fields(value), SAMPLE):
                added, again = self._size(attribute, counted, depth - 1)
                size, shared = size + added, shared + again
        return size, shared

    def _container_size(self, value: Any, counted: set[Any], depth: int) -> tuple[int, int]:
        shallow = base_of(type(value)).__sizeof__(value)
        count = fresh = shared = 0
        if depth > 0:
            for item in _items(value, SAMPLE if depth > 1 else SAMPLE // 4):
                count += 1
                for part in item:
                    added, again = self._size(part, counted, depth - 1)
                    fresh, shared = fresh + added, shared + again
        # Where a sample is mostly the same memory again, the elements not looked at are so too.
        scale = length(value) / count if count and fresh >= shared else 1.0
        return shallow + round(fresh * scale), shared

    # ---------------------------------------------------------------- autograd

    def _graph(self, tensor: Any) -> Entry | None:
        root = self.tensor.grad_fn.__get__(tensor)
        if root is None:
            return None
        return walk_graph(root, self.deadline)

    def _graph_of_elements(self, value: Any) -> Entry | None:
        """The graphs that a container of tensors keeps: the mean of a few, times its length."""
        looked: list[Any] = elements(value, 3)
        graphs = []
        for element in looked:
            nested = type(element) in (tuple, list, dict)
            for part in elements(element, 4) if nested else [element]:
                if issubclass(type(part), self.tensor) and not reading.is_opaque(type(part), self.tensor):
                    graph = self._graph(part)
                    if graph is not None:
                        graphs.append(graph)
                        break  # the tensors of one element mostly hang on one graph
        if not graphs:
            return None
        nodes = sum(graph["nodes"] for graph in graphs) / len(graphs) * length(value)
        nodes *= len(graphs) / len(looked)
        return {
            "nodes": round(nodes),
            "span": max(graph["span"] for graph in graphs),
            "complete": True,
        }


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that some Python or extension code made


def walk_graph(root: Any, deadline: float) -> Entry:
    """Count the autograd graph behind `root`, its oldest nodes first, to at most 2,000 nodes.

    Oldest first, so that a walk that is cut short still reaches the graph's far end: ``span`` is
    how many operations were recorded since the oldest node. A graph made anew in each step has a
    constant span.
    """
    newest = oldest = root._sequence_nr()
    heap = [(newest, 0, root)]
    visited = {root}  # the nodes themselves: their Python faces are made on demand
    nodes = 0
    while heap and nodes < GRAPH_NODE_LIMIT:
        number, _, node = heapq.heappop(heap)
        nodes += 1
        oldest = min(oldest, number)
        if nodes & 127 == 0 and time.thread_time() > deadline:
            break
        for child, _ in node.next_functions:
            if child is not None and child not in visited:
                visited.add(child)
                heapq.heappush(heap, (child._sequence_nr(), len(visited), child))
    return {"nodes": nodes, "span": newest - oldest, "complete": not heap}


def base_of(kind: type) -> Any:
    """The built-in container class that `kind` is or derives from, or None."""
    return next((base for base, _ in _CONTAINERS if issubclass(kind, base)), None)


def length(container: Any) -> int:
    """The length as the built-in class counts it."""
    return base_of(type(container)).__len__(container)


def elements(container: Any, most: int) -> list[Any]:
    """At most `most` elements (a dict's values), spread evenly from the first to the last."""
    return [item[-1] for item in _items(container, most)]


def fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Name and value of what an instance holds of attributes and in its ``__slots__``."""
    yield from [(name, each) for name, each in list(reading.attributes(value).items()) if type(name) is str]
    for base in type(value).__mro__:
        for name, slot in list(type.__getattribute__(base, "__dict__").items()):
            if type(slot) is _MEMBER:
                with contextlib.suppress(AttributeError, TypeError):  # never set, or not readable
                    yield name, slot.__get__(value)


def _items(container: Any, most: int) -> list[tuple[Any, ...]]:
    base = base_of(type(container))
    count = base.__len__(container)
    try:
        if base in (list, tuple, deque):
            where = range(count)
            if count > most:
                where = [i * (count - 1) // (most - 1) for i in range(most)]  # type: ignore[assignment]
            return [(base.__getitem__(container, i),) for i in where]
        if base is dict:
            if count <= most:
                return list(dict.items(container))
            ends = (dict.items(container), reversed(dict.items(container)))
            return [item for end in ends for item in itertools.islice(end, most // 2)]
        return [(item,) for item in itertools.islice(base.__iter__(container), most)]
    except (RuntimeError, IndexError):  # another thread changed it meanwhile
        return []


def _entry(kind: str, count: int, size: int, bounded: bool = False, graph: Entry | None = None) -> Entry:
    return {"kind": kind, "len": count, "bytes": size, "bounded": bounded, "graph": graph}
