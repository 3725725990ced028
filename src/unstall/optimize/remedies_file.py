"""``remedies.toml``: the kept remedies that can be set at run time, for ``unstall run --with remedies.toml``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

if TYPE_CHECKING:
    from unstall.optimize.proposal import Attempt

_MAX_BYTES = 64 << 10
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 16)]


class _Loader(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    num_workers: _Count | None = None
    persistent_workers: bool | None = None
    prefetch_factor: _Count | None = None
    pin_memory: bool | None = None


class _Optimizer(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    fused: bool | None = None
    foreach: bool | None = None


class _Settings(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What :mod:`unstall.child.trial.settings` can set."""

    loader: _Loader | None = None
    optimizer: _Optimizer | None = None
    threads: _Count | None = None
    gc_freeze: bool | None = None
    flush_subnormals: bool | None = None
    keep_freed_memory: bool | None = None


class RemediesError(Exception):
    """The file cannot be used; the message says why, in one line."""


def written(attempts: Iterable[Attempt]) -> str:
    """The file's text. A kept remedy that only the source can hold is named in a comment."""
    settings: dict[str, Any] = {}
    lines = ["# Written by `unstall optimize`. Use it with `unstall run --with remedies.toml PROGRAM`."]
    for attempt in attempts:
        lines.append(f"# {attempt.name}{'' if attempt.proposal.settings else ' (only in the patch)'}")
        for name, value in attempt.proposal.settings.items():
            settings[name] = {**settings.get(name, {}), **value} if isinstance(value, Mapping) else value
    values = {name: value for name, value in settings.items() if not isinstance(value, Mapping)}
    lines += ["", *(f"{name} = {_toml(value)}" for name, value in values.items())]
    for name, table in settings.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    return "\n".join(lines).rstrip() + "\n"


def read(path: Path) -> dict[str, Any]:
    """The settings in a file. Raises RemediesError."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise RemediesError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > _MAX_BYTES:
        raise RemediesError(f"{path} is no remedies file: it is larger than {_MAX_BYTES >> 10} KB")
    try:
        settings = msgspec.toml.decode(data, type=_Settings)
    except (ValueError, RecursionError, MemoryError, ImportError) as error:  # a DecodeError is a ValueError
        raise RemediesError(f"{path} is no remedies file: {error}") from error
    return dict(msgspec.to_builtins(settings))


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
