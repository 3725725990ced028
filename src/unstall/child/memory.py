"""memray around the user's program, for ``--memory``. Runs in the program's main process, from its environment."""

from __future__ import annotations

import _thread
import importlib
import itertools
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def start(directory: str) -> Callable[[], None]:
    """Record allocations into ``memray-<pid>.bin`` in an existing directory.

    Returns:
        What stops the recording; it does nothing in a process forked meanwhile.

    Raises:
        RuntimeError: memray is not installed or cannot start; one line says what to do.
    """
    try:
        memray: Any = importlib.import_module("memray")
    except ImportError as error:
        raise RuntimeError(
            f"--memory needs memray, which {sys.executable} cannot import ({error}); "
            f"install it there with: {sys.executable} -m pip install memray"
        ) from None
    owner = os.getpid()
    tracker = memray.Tracker(os.path.join(directory, f"memray-{owner}.bin"), follow_fork=False)
    try:
        _enter(tracker)
    except Exception as error:
        raise RuntimeError(f"memray could not be started: {error}") from error

    def stop() -> None:
        if os.getpid() == owner:
            tracker.__exit__(None, None, None)

    return stop


def _enter(tracker: Any) -> None:
    """Start it from another thread.

    memray cuts off from a thread's stacks as many frames as it is started under: those of the start-up here, but those
    of the program's main module, and more, afterwards.
    """
    failure: list[BaseException] = []
    done = _thread.allocate_lock()
    done.acquire()

    def enter() -> None:
        try:
            tracker.__enter__()
        except BaseException as error:
            failure.append(error)
        finally:
            done.release()

    _thread.start_new_thread(enter, ())
    done.acquire()
    if failure:
        raise failure[0]


def is_worker_process() -> bool:
    """Whether multiprocessing made this process: a worker, a fork server or a resource tracker."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        return True
    # A spawned one learns its role only later; its command line tells at once.
    arguments = sys.orig_argv
    return any(flag == "-c" and code.startswith("from multiprocessing") for flag, code in itertools.pairwise(arguments))
