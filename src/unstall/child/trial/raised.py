"""Let a function of the program fail where it is called, as a file that cannot be read would: is it told to anybody?

``plan["path"]`` and ``plan["name"]``: of the function; ``plan["call"]``: which call of it fails, in each process and in
whatever thread. ``raised.json`` is there once it has.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType


class RaisedFault(OSError):
    """Raised where the function begins."""


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Follow all calls from now on, until the one that fails."""
    path, name, left = str(plan["path"]), str(plan["name"]), int(plan["call"])
    lock = threading.Lock()

    def follow(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        if event != "call" or frame.f_code.co_name != name or os.path.abspath(frame.f_code.co_filename) != path:
            return
        with lock:
            left -= 1
            is_it = left == 0
        if is_it:
            threading.setprofile(None)
            with open(os.path.join(folder, "raised.json"), "w") as file:
                file.write("true")
            # What a profile function raises is raised where the call is, and ends the following of this thread.
            raise RaisedFault(errno.EIO, "a fault that was put in here, to see how the program ends")

    threading.setprofile(follow)
    sys.setprofile(follow)
    return []
