"""TensorBoard's event files as text: a line for each value, without the moment at which it was written.

The bytes of such a file are others in each run. What it says is what the program logs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import BinaryIO

_MARK = ".tfevents."
_LENGTH, _CHECKSUM = 8, 4  # of a record: its length, a checksum of that, the content, a checksum of it


def is_one(name: str) -> bool:
    """Whether a file of this name is one."""
    return _MARK in name


def as_text(file: BinaryIO) -> bytes | None:
    """The values in it; None where they cannot be read, or TensorBoard is not installed."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event
    except ImportError:
        return None
    lines = []
    try:
        for record in _records(file):
            event = Event.FromString(record)
            lines += [f"{event.step} {value.tag} {_of_value(value)}\n" for value in event.summary.value]
    except Exception:  # what protobuf raises of other content differs between its versions
        return None
    return "".join(lines).encode()


def _of_value(value: object) -> str:
    """A single number as such, all else by what it holds."""
    kind = value.WhichOneof("value")  # type: ignore[attr-defined]
    if kind == "simple_value":
        return f"{value.simple_value:.8g}"  # type: ignore[attr-defined]
    content = getattr(value, kind).SerializeToString(deterministic=True) if kind else b""
    return f"{kind} {hashlib.blake2b(content, digest_size=16).hexdigest()}"


def _records(file: BinaryIO) -> Iterator[bytes]:
    while header := file.read(_LENGTH + _CHECKSUM):
        content = file.read(int.from_bytes(header[:_LENGTH], "little"))
        file.read(_CHECKSUM)
        yield content
