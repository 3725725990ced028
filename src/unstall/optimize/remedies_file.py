"""``remedies.toml``: the kept remedies that can be set at run time, for ``unstall run --with remedies.toml``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from unstall.optimize.proposal import Attempt

_KNOWN = {
    "loader": {"num_workers": int, "persistent_workers": bool, "prefetch_factor": int, "pin_memory": bool},
    "optimizer": {"fused": bool, "foreach": bool},
    "threads": int,
    "gc_freeze": bool,
}


class RemediesError(Exception):
    """The file cannot be used; the message says why, in one line."""


def written(kept: Iterable[Attempt]) -> str:
    """The file's text. A kept remedy that only the source can hold is named in a comment."""
    settings: dict[str, Any] = {}
    lines = ["# Written by `unstall optimize`. Use it with `unstall run --with remedies.toml PROGRAM`."]
    for attempt in kept:
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
        found = msgspec.toml.decode(path.read_bytes())
    except OSError as error:
        raise RemediesError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, ImportError) as error:
        raise RemediesError(f"{path} is no remedies file: {error}") from error
    for name, value in found.items():
        kind = _KNOWN.get(name)
        if kind is None:
            raise RemediesError(f"{path}: there is no remedy {name!r}; known are {', '.join(_KNOWN)}")
        pairs = value.items() if isinstance(kind, dict) and isinstance(value, dict) else [(name, value)]
        kinds = kind if isinstance(kind, dict) else {name: kind}
        if isinstance(kind, dict) != isinstance(value, dict):
            raise RemediesError(f"{path}: {name} is {'a table' if isinstance(kind, dict) else 'one value'}")
        for key, one in pairs:
            if key not in kinds or type(one) is not kinds[key]:
                raise RemediesError(f"{path}: {name}.{key} = {one!r} is not known")
    return found


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
