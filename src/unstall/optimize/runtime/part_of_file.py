"""Reads the part of a file that is asked for, and not the rest."""

from __future__ import annotations

import pathlib
from typing import Any


def _part_of_file(file: Any, start: Any, stop: Any) -> Any:
    """``file.read()[start:stop]`` of a binary file."""
    if not file.seekable():
        return file.read()[start:stop]
    position = file.tell()
    end = file.seek(0, 2)
    first, last, _ = slice(start, stop).indices(max(end - position, 0))
    file.seek(position + first)
    part = file.read(max(last - first, 0))
    file.seek(max(end, position))  # where reading all leaves it
    return part


def _part_of_path(path: Any, start: Any, stop: Any) -> Any:
    """``path.read_bytes()[start:stop]``."""
    with pathlib.Path(path).open("rb") as file:
        return _part_of_file(file, start, stop)
