"""Lets folders be renamed on an overlay of an ordinary user's, where the kernel refuses it with EXDEV.

A folder that is in the lower tree cannot be renamed there (overlayfs.rst, "Renaming directories"); one that was made
in the layer above can. So before Python renames such a folder it is replaced by a copy of itself. Other programs copy
by themselves, as ``mv`` does.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Any

from unstall.child.sandbox import audit


def install() -> None:
    """Watch renames from here on, in this process and those it forks."""

    def on_rename(*arguments: Any) -> None:
        with contextlib.suppress(OSError, TypeError, ValueError):
            _before_rename(*arguments)

    audit.listen({"os.rename": on_rename})


def _before_rename(source: Any, _target: Any, source_folder: int = -1, _target_folder: int = -1) -> None:
    path = os.path.abspath(os.fsdecode(source))
    if source_folder >= 0 or os.path.islink(path) or not os.path.isdir(path):
        return
    aside = f"{path}.unstall-moved-{os.getpid()}"
    try:
        os.rename(path, aside)
        os.rename(aside, path)
    except OSError as error:
        if error.errno == errno.EXDEV:
            _replace_by_copy(path, aside)


def _replace_by_copy(path: str, aside: str) -> None:
    import shutil

    parent = os.path.dirname(path)
    times = os.stat(parent)
    shutil.copytree(path, aside, symlinks=True)
    shutil.rmtree(path)
    os.rename(aside, path)
    os.utime(parent, ns=(times.st_atime_ns, times.st_mtime_ns))
