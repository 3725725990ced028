"""Hold up what runs beside the main thread whenever it is about to write a file: what it writes must not depend on it.

Threads, and processes that the program has started, wait before they open a file for writing or save with torch. And
threads change places far more often than usual. Nothing is timed in such a run.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

_HELD_S = 0.75  # longer than a process may outlive the program, thresholds.OUTLIVES_S
_MOST_TIMES = 4  # a thread
_SWITCH_S = 1e-5

_main = os.getpid(), threading.main_thread().ident
_times: dict[tuple[int, int], int] = {}


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Watch files as they are opened, and torch's saving, which opens them where Python does not see it."""
    sys.setswitchinterval(_SWITCH_S)
    sys.addaudithook(_audit)
    return [("torch.serialization", _torch)]


def _audit(event: str, args: Any) -> None:
    if event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        hold()


def _torch(module: Any) -> None:
    save = module.save

    def held_save(*args: Any, **kwargs: Any) -> Any:
        hold()
        return save(*args, **kwargs)

    module.save = held_save
    torch: Any = sys.modules["torch"]
    if getattr(torch, "save", None) is save:
        torch.save = held_save


def hold() -> None:
    """Wait, unless this is the main thread of the program's first process."""
    here = os.getpid(), threading.get_ident()
    if here != _main and _times.get(here, 0) < _MOST_TIMES:
        _times[here] = _times.get(here, 0) + 1
        time.sleep(_HELD_S)
