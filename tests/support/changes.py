"""Records are frozen: a test that wants another one asks for a copy."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


def changed(record: T, **changes: object) -> T:
    """A copy with other values; ``run__steps=300`` changes the field ``steps`` of the record that is the field ``run``."""
    for path, value in changes.items():
        name, _, rest = path.partition("__")
        inner = changed(getattr(record, name), **{rest: value}) if rest else value
        record = msgspec.structs.replace(record, **{name: inner})
    return record
