"""The rows of a bench's table, kept in a file from one sitting to the next."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

RowT = TypeVar("RowT")


def rows_in(path: Path | None, make: type[RowT]) -> list[RowT]:
    """The rows of this dataclass that a file has; none where there is no file.

    Raises TypeError where they are of another form than the dataclass.
    """
    if path is None or not path.exists():
        return []
    return [make(**fields) for fields in json.loads(path.read_text(encoding="utf-8"))]


def keep(path: Path | None, rows: Iterable[Any]) -> None:
    """Write them where ``rows_in`` finds them, each on a line of its own; nowhere where no file is named."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(asdict(row)) for row in rows)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
