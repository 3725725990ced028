"""Note what the program writes to files, and when calls that the patch defers are made.

``written.json``: [name without its folder, digest] of each file that the program opened to write, as it is when the
clock stops. ``plan["deferred"]``: calls that the patch makes in a thread are made ``at once``, the caller waiting for
each, so that what they compute comes in the order of the original; or ``late``, when no more may wait or the program
asks for them: so that a call that sees what changed after it was asked for writes something else, and not only by bad
luck.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import threading
import time
from typing import Any

from unstall.child.sandbox import audit
from unstall.optimize import child
from unstall.optimize.child import clock as clocks

THREAD = "background"
"""The name that the patch gives to its thread."""
_WRITES = os.O_WRONLY | os.O_RDWR
_MAX_FILES = 500
_MAX_BYTES = 256 << 20
_LOOK_S = 0.002


class Written:
    """The files that this process opened to write."""

    def __init__(self, folder: str):
        self.folder = folder
        self.paths: dict[str, None] = {}
        self.pid = os.getpid()

    def on_open(self, path: Any, _mode: str | None, flags: int | None) -> None:
        """Must be quick, and must not raise."""
        if len(self.paths) >= _MAX_FILES or os.getpid() != self.pid:
            return
        if (flags or 0) & _WRITES and isinstance(path, (str, os.PathLike)):
            full = os.path.abspath(path)
            if not full.startswith((self.folder, "/dev/", "/proc/", "/sys/")):
                self.paths.setdefault(full)

    def tell(self) -> None:
        """Write down what is in them now."""
        found = []
        left = _MAX_BYTES
        for path in list(self.paths):
            try:
                status = os.stat(path)
                if not stat.S_ISREG(status.st_mode) or status.st_size > left:
                    continue
                left -= status.st_size
                with open(path, "rb") as file:
                    digest = hashlib.blake2b(file.read(), digest_size=16).hexdigest()
            except OSError:
                continue
            found.append([os.path.basename(path), digest])
        with open(os.path.join(self.folder, "written.json"), "w") as file:
            json.dump(sorted(found), file)


class Deferred:
    """The patch's queue: calls put in it by the program, taken out by its thread."""

    def __init__(self, late: bool):
        self.late = late
        self.queues: list[Any] = []
        self.asked = 0
        """Callers that wait for all calls to be done."""

    def install(self, module: Any) -> None:
        """Wrap the queue's methods; queues that are others' behave as they did."""
        put, get, join = module.Queue.put, module.Queue.get, module.Queue.join

        def put_(queue: Any, *args: Any, **kwargs: Any) -> None:
            owner = sys._getframe(1).f_locals.get("self")
            if getattr(getattr(owner, "thread", None), "name", None) == THREAD and queue not in self.queues:
                self.queues.append(queue)
            put(queue, *args, **kwargs)
            if queue in self.queues and not self.late:
                join(queue)

        def get_(queue: Any, *args: Any, **kwargs: Any) -> Any:
            while self.late and not self.asked and threading.current_thread().name == THREAD and not queue.full():
                time.sleep(_LOOK_S)
            return get(queue, *args, **kwargs)

        def join_(queue: Any) -> None:
            self.asked += 1
            try:
                join(queue)
            finally:
                self.asked -= 1

        module.Queue.put, module.Queue.get, module.Queue.join = put_, get_, join_


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """An audit hook now, the queues when they are imported, and an end when the clock stops."""
    if child.is_helper():
        return []
    written = Written(folder)
    deferred = Deferred(plan.get("deferred") == "late")
    audit.hear({"open": written.on_open})

    def finish() -> None:
        clocks.drain()
        written.tell()

    def add_end(module: Any) -> None:
        if clocks.current is not None and finish not in clocks.current.on_end:
            clocks.current.on_end.append(finish)

    return [("queue", deferred.install), ("torch", add_end)]
