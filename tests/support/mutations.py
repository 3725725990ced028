"""Valid values with one to three fields made otherwise: wrong, missing, too many, too large, or hostile to a terminal."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import strategies as st

ESCAPES = "\x1b]0;title\x07\x1b[31mred\x9b2J\x7f\r\n\u202e\ud800"
MANY = 1_000_000
DEEP = 100_000

_NUMBERS = (0, -1, 1, 2**31, -(2**31), 2**53, 2**63 - 1, -(2**63), 10**18, 0.5, -0.5, 1e-300, 1e300, -1e300)
_NOT_FINITE = (math.nan, math.inf, -math.inf)
_HUGE = (2**64, 10**30, -(10**400))
_TEXTS = ("", ESCAPES, "../../../etc/passwd", "/dev/zero", "%s%n{0}", "\0", "[bold]x[/nothing]", "ſ\u0301" * 500)


_LARGE_JSON = {
    "@long": b'"' + b"x" * MANY + b'"',
    "@escapes": b'"' + b"\\u001b[" * (MANY // 8) + b'"',
    "@deep": b"[" * DEEP + b"]" * DEEP,
    "@deep objects": b'{"a":' * DEEP + b"0" + b"}" * DEEP,
    "@numbers": b"[" + b"0," * MANY + b"0]",
    "@texts": b"[" + b'"",' * MANY + b'""]',
    "@lists": b"[" + b"[]," * MANY + b"[]]",
    "@objects": b"[" + b"{}," * MANY + b"{}]",
    "@digits": b"9" * 10_000,
    "@same keys": b'{"id":0,"id":1}',
}
_LARGE_MSGPACK = {
    "@long": b"\xdb" + MANY.to_bytes(4, "big") + b"x" * MANY,
    "@escapes": b"\xdb" + MANY.to_bytes(4, "big") + b"\x1b[" * (MANY // 2),
    "@deep": b"\x91" * DEEP + b"\x90",
    "@deep objects": b"\x81\xa1a" * DEEP + b"\x80",
    "@numbers": b"\xdd" + MANY.to_bytes(4, "big") + b"\0" * MANY,
    "@texts": b"\xdd" + MANY.to_bytes(4, "big") + b"\xa0" * MANY,
    "@lists": b"\xdd" + MANY.to_bytes(4, "big") + b"\x90" * MANY,
    "@objects": b"\xdd" + MANY.to_bytes(4, "big") + b"\x80" * MANY,
    "@digits": b"\xdd\xff\xff\xff\xff",  # a list that claims to have four thousand million entries
    "@same keys": b"\x82\xa2id\x00\xa2id\x01",
}
"""What large values stand for: Hypothesis gets short names, and the file what they mean."""


def as_json(value: Any) -> bytes:
    """As Python writes JSON: with NaN, lone surrogates, and integers of any length."""
    data = json.dumps(value, default=repr).encode()
    for name, large in _LARGE_JSON.items():
        data = data.replace(json.dumps(name).encode(), large)
    return data


def as_msgpack(value: Any) -> bytes:
    """As a recording has it."""
    data = msgspec.msgpack.encode(_encodable(value))
    for name, large in _LARGE_MSGPACK.items():
        data = data.replace(msgspec.msgpack.encode(name), large)
    return data


def as_cell(value: Any) -> Any:
    """As SQLite takes it."""
    if isinstance(value, str):
        return "x" * MANY if value == "@long" else value.encode("utf-8", "replace").decode()
    return value if value is None or isinstance(value, (bool, int, float, bytes)) else str(value)[:1000]


def _encodable(value: Any) -> Any:
    if isinstance(value, dict):
        return {_encodable(name): _encodable(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_encodable(part) for part in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return 1e300 if isinstance(value, int) and not -(2**63) <= value < 2**64 else value


def mutations(value: Any, others: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """``value`` with one to three of its fields changed; ``others`` are put in place of some."""
    return st.builds(_mutated, st.just(value), st.data(), st.just(others))


def _mutated(value: Any, data: Any, others: st.SearchStrategy[Any]) -> Any:
    holder = {"value": copy.deepcopy(value)}
    for _ in range(data.draw(st.integers(1, 3), label="changes")):
        paths = list(_paths(holder["value"], ("value",)))
        # First how deep, then which: else the many leaves of lists hide the fields above them.
        depth = data.draw(st.sampled_from(sorted({len(path) for path in paths})), label="depth")
        path = data.draw(st.sampled_from([path for path in paths if len(path) == depth]), label="path")
        parent: Any = holder
        for key in path[:-1]:
            parent = parent[key]
        change = data.draw(st.sampled_from(_CHANGES), label="change")
        change(parent, path[-1], data, others)
    return holder["value"]


def _paths(value: Any, path: tuple[Any, ...]) -> Any:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from _paths(part, (*path, key))


def _replace(parent: Any, key: Any, data: Any, others: st.SearchStrategy[Any]) -> None:
    parent[key] = copy.deepcopy(data.draw(others, label="value"))


def _remove(parent: Any, key: Any, data: Any, others: st.SearchStrategy[Any]) -> None:
    if key != "value" or len(parent) > 1:  # the document itself stays
        del parent[key]


def _repeat(parent: Any, key: Any, data: Any, others: st.SearchStrategy[Any]) -> None:
    """A list's first entry twice more: ids that are no ids. Of a text, it is twice as long."""
    if isinstance(parent[key], list):
        parent[key] = parent[key][:1] * 2 + parent[key]
    elif isinstance(parent[key], (str, bytes)):
        parent[key] = parent[key] * 2


def _shorten(parent: Any, key: Any, data: Any, others: st.SearchStrategy[Any]) -> None:
    if isinstance(parent[key], (list, str, bytes)):
        parent[key] = parent[key][: len(parent[key]) // 2]


def _add(parent: Any, key: Any, data: Any, others: st.SearchStrategy[Any]) -> None:
    if isinstance(parent[key], dict):
        parent[key][data.draw(st.sampled_from(_TEXTS[:3] + ("unknown",)), label="key")] = copy.deepcopy(
            data.draw(others)
        )
    elif isinstance(parent[key], list):
        parent[key].append(copy.deepcopy(data.draw(others)))


def _negate(parent: Any, key: Any, data: Any, others: st.SearchStrategy[Any]) -> None:
    if isinstance(parent[key], (int, float)):
        parent[key] = -parent[key] - 1


def _spoil(parent: Any, key: Any, data: Any, others: st.SearchStrategy[Any]) -> None:
    """Escape sequences in every text below."""
    parent[key] = _spoiled(parent[key])


def _spoiled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _spoiled(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_spoiled(part) for part in value]
    return value + ESCAPES if isinstance(value, str) else value


_CHANGES: tuple[Callable[..., None], ...] = (
    _replace,
    _replace,
    _replace,
    _remove,
    _repeat,
    _shorten,
    _add,
    _negate,
    _spoil,
)

plain_values = st.sampled_from([None, True, False, *_NUMBERS, *_NOT_FINITE, *_TEXTS, "@long"])
"""What a column of a database can hold, and what else can."""
values = plain_values | st.sampled_from([*_HUGE, [], {}, [[]], {"": {}}, {"id": ESCAPES}, *_LARGE_JSON])
"""What a document can hold."""
