"""Files of another group than this process's, as in a setgid project folder: an experiment cannot change them.

An ordinary user's sandbox knows one user and one group (user_namespaces(7)), and a layer cannot take a copy of a file
whose group it does not know: the kernel answers EOVERFLOW.
"""

from __future__ import annotations

import grp
import os
from itertools import islice
from pathlib import Path

from unstall.sandbox.thresholds import MOST_ENTRIES


def warning(folder: Path) -> str | None:
    """One line where programs could write to files of another group in a folder, and cannot in an experiment."""
    for path in [str(folder), *_entries(folder)]:
        try:
            facts = os.lstat(path)
        except OSError:
            continue  # gone by now
        if facts.st_gid != os.getegid() and os.access(path, os.W_OK):
            group = _name(facts.st_gid)
            return (
                f"{path} is of the group {group}: in an experiment, files and folders of that group cannot be changed"
                " (EOVERFLOW, Value too large for defined data type); if the program does that, start unstall as that"
                f" group: sg {group} -c 'unstall ...'"
            )
    return None


def _entries(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in islice(entries, MOST_ENTRIES) if not entry.is_symlink()]
    except OSError:
        return []


def _name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
