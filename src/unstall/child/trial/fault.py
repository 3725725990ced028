"""Let one call of a model fail, as a full memory or a bad sample would: what the program then does is its own matter.

``plan["call"]``: after how many calls from outside of any model, of the main process, in ``plan["mode"]``, ``train``
or ``eval``. ``plan["kind"]``: ``error``; ``interrupt``, as Ctrl-C; ``kill``, as out of memory; ``full``, a disk that
has no room for the next file that is written then; or, from the beginning, ``cut``, one that takes ``plan["bytes"]``
of each file: what is written beyond them is refused, and the write before that is short; or ``no-room``, for what is
written to ``plan["path"]``.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
from contextlib import suppress
from typing import Any

from unstall.child import trial
from unstall.child.trial.writing import before_opening, before_saving

_NO_FILES = ("/dev/", "/proc/", "/sys/")


class Fault(RuntimeError):
    """Raised in place of a model's result."""


class FullDisk:
    """Refuses once to open a file for writing when it is full, or to save with torch, which opens them by itself."""

    def __init__(self) -> None:
        self.is_full = False

    def fill(self) -> None:
        """There is no room for the next one."""
        self.is_full = True
        before_opening(lambda path: None if path.startswith(_NO_FILES) else self.refuse())

    def refuse(self) -> None:
        """If it is full."""
        if self.is_full:
            self.is_full = False
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """A hook on the calls of models."""
    if trial.is_helper():
        return []
    if plan["kind"] == "cut":  # processes that this one starts inherit it
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(plan["bytes"]), int(plan["bytes"])))
        return []
    if plan["kind"] == "no-room":
        with suppress(OSError):  # a folder that the program makes itself is not there yet
            os.symlink("/dev/full", plan["path"])
        return []
    left, disk = int(plan["call"]), FullDisk()
    # One that was started in the background ignores it by heritage, which is no choice of its own.
    if plan["kind"] == "interrupt" and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def count(model: Any, args: tuple[Any, ...], result: Any) -> None:
        nonlocal left
        if not trial.is_unseen() and model.training == (plan["mode"] == "train"):
            left -= 1
            if left:
                return
            if plan["kind"] == "interrupt":
                signal.raise_signal(signal.SIGINT)
            elif plan["kind"] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif plan["kind"] == "full":
                disk.fill()
            else:
                raise Fault("a fault that was put in here, to see how the program ends")

    return [
        ("torch.nn.modules.module", lambda module: trial.after_model_calls(module, count)),
        ("torch.serialization", lambda module: before_saving(module, disk.refuse)),
    ]
