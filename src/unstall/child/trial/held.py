"""Hold up what runs beside the main thread whenever it is about to write a file: what it writes must not depend on it.

Threads, and processes that the program has started, wait before they begin, take something from a queue, open a file
for writing or save with torch. And threads change places far more often than usual. Nothing is timed in such a run.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from unstall.child.trial.writing import before_opening, before_saving

_HELD_S = 0.75  # longer than a process may outlive the program, thresholds.OUTLIVES_S
_ALWAYS = 4  # times, and then ever more rarely: a pool does thousands of things
_SWITCH_S = 1e-5

_main = os.getpid(), threading.main_thread().ident
_times: dict[str, int] = {}
"""How often what was done so far."""


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Watch files as they are opened, and torch's saving, which opens them where Python does not see it."""
    sys.setswitchinterval(_SWITCH_S)
    before_opening(lambda path: hold("open"))
    _threads()
    return [
        ("torch.serialization", lambda module: before_saving(module, lambda: hold("save"))),
        ("concurrent.futures.thread", lambda module: _hold_before(module._WorkItem, "run")),
        ("queue", lambda module: _hold_before(module.Queue, "get")),  # who puts something in goes on meanwhile
    ]


def _threads() -> None:
    """What a thread is to do: its starting, which another waits for, is not held up."""
    begin: Any = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def _bootstrap_inner(self: Any) -> None:
        run = self.run

        def held() -> None:
            hold("thread")
            run()

        self.run = held
        begin(self)

    threading.Thread._bootstrap_inner = _bootstrap_inner  # type: ignore[attr-defined]


def _hold_before(cls: Any, name: str) -> None:
    """Wait before a method begins: what it is to do is not done at once."""
    original = getattr(cls, name)

    def held(self: Any, *args: Any, **kwargs: Any) -> Any:
        hold(name)
        return original(self, *args, **kwargs)

    setattr(cls, name, held)


def hold(what: str) -> None:
    """Wait, unless this is the main thread of the program's first process."""
    if (os.getpid(), threading.get_ident()) == _main:
        return
    _times[what] = times = _times.get(what, 0) + 1
    if times <= _ALWAYS or not times & (times - 1):
        time.sleep(_HELD_S)
