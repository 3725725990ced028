"""Names of files that are others in each run: TensorBoard's hold the time and the process, MLflow's a random number.

Two runs of one program would have no such file in common. Known by their names without these, they are compared like
any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

_MOMENT = re.compile(
    r"(?<!\d)(?:1[5-9]\d{8}|20\d\d[-_.]?[01]\d[-_.]?[0-3]\d(?:[-_T. ]?[0-2]\d[-_:.]?[0-5]\d(?:[-_:.]?[0-5]\d)?)?)(?!\d)"
)
_RANDOM = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}(?![0-9A-Za-z])")
_DIGITS = re.compile(r"\d+")
_T = TypeVar("_T")


def known_as(path: str) -> str:
    """A path without what is another in each run: moments, with all other digits of such a name, and random numbers."""
    return "/".join(
        _DIGITS.sub("#", part) if _MOMENT.search(part) else _RANDOM.sub("#", part) for part in path.split("/")
    )


def by_known_names(files: Mapping[str, _T]) -> dict[str, _T]:
    """The same files by these names; several of one name are told apart by their order."""
    known: dict[str, _T] = {}
    for path in sorted(files):
        name = plain = known_as(path)
        number = 1
        while name in known:
            number += 1
            name = f"{plain} ({number})"
        known[name] = files[path]
    return known
