"""Which distribution an installed file is of: name and version, from the metadata that lies beside its package.

The program's interpreter may be another than this one, so nothing is imported and only the file's own folder is asked.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import metadata
from typing import NamedTuple

from unstall.child.user_files import package_of, within_packages


class Installed(NamedTuple):
    """A distribution; ``version`` is empty where no metadata says which one it is of."""

    package: str
    version: str = ""


def distribution_of(file: str) -> Installed | None:
    """The distribution whose record or top level names an installed file; None for a file that is not installed.

    A package without metadata, copied into the folder by hand, goes by its import name.
    """
    within = within_packages(file)
    if within is None:
        return None
    return _find(within[0], within[1].replace("\\", "/"), package_of(file))


@functools.lru_cache(maxsize=256)
def _find(folder: str, path: str, package: str) -> Installed:
    candidates = list(_distributions(folder))
    # By its name first: reading the records of all that is installed takes a while.
    candidates.sort(key=lambda candidate: _canonical(candidate[0].package) != _canonical(package))
    by_record = (installed for installed, distribution in candidates if _names(distribution, "RECORD", f"{path},"))
    by_top_level = (
        installed for installed, distribution in candidates if _names(distribution, "top_level.txt", f"{package}\n")
    )
    return next(by_record, None) or next(by_top_level, None) or Installed(package)


@functools.lru_cache(maxsize=16)
def _distributions(folder: str) -> list[tuple[Installed, metadata.Distribution]]:
    return list(_read(folder))


def _read(folder: str) -> Iterator[tuple[Installed, metadata.Distribution]]:
    for distribution in metadata.distributions(path=[folder]):
        try:
            name, version = distribution.metadata["Name"], distribution.version
        except (OSError, ValueError, KeyError, TypeError):  # metadata that is gone or was cut off
            continue
        if name:
            yield Installed(name, version or ""), distribution


def _names(distribution: metadata.Distribution, listing: str, line: str) -> bool:
    """Whether a line of one of the distribution's listings begins so."""
    try:
        text = distribution.read_text(listing) or ""
    except (OSError, ValueError):
        return False
    return f"\n{line}" in f"\n{text}\n"


def _canonical(name: str) -> str:
    """As PEP 503 has it."""
    return re.sub(r"[-_.]+", "-", name).lower()
