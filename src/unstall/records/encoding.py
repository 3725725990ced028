"""Records as bytes.

What a measurement computed with NumPy may hold NumPy's numbers: they are written as Python's. Names that come from
files and programs may hold halves of characters, which UTF-8 has no bytes for: they are written as U+FFFD.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


def indented_json(record: Any) -> bytes:
    """The record as JSON that a person can read, two spaces a level."""
    return msgspec.json.format(plain_json(record), indent=2)


def plain_json(record: Any) -> bytes:
    """The record as JSON in one line."""
    return _encoded(msgspec.json.encode, record)


def packed(record: Any) -> bytes:
    """The record as MessagePack, for files that only unstall reads."""
    return _encoded(msgspec.msgpack.encode, record)


def _encoded(encode: Callable[..., bytes], record: Any) -> bytes:
    try:
        return encode(record, enc_hook=python_number)
    except UnicodeEncodeError:
        return encode(_whole_characters(msgspec.to_builtins(record, enc_hook=python_number)))


def python_number(value: Any) -> Any:
    """NumPy's number as Python's. Raises TypeError for anything else that has no place in a record."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(f"{type(value).__name__} has no place in a record")
    return item()


def _whole_characters(value: Any) -> Any:
    """The same of plain types, with U+FFFD for each half of a character."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole_characters(inner) for inner in value]
    return value
