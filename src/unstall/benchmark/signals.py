"""Signals while the program runs: wake the launcher, and tell whether the program got them already.

A Ctrl-C in the terminal, or ``timeout``, signals the whole process group, the program included; ``kill`` signals
unstall alone, and then the program must be told. A canary, a process of our group that does nothing but wait for
signals, tells the two apart: what it heard, the program heard.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_S = 0.05


class Signals:
    """Handlers for the time a program runs; use as a context manager."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        """All that came, whoever else heard them."""
        self._received: list[int] = []
        self._previous: dict[int, Any] = {}
        self._old_wakeup: int | None = None
        self._wakeup, self._write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def __enter__(self) -> Signals:
        with _held_back():
            self._canary_heard, self._canary = _start_canary()
            if threading.current_thread() is not threading.main_thread():
                return self  # Python lets no other thread handle signals; then there are none to pass on
            for number in (*FORWARDED, signal.SIGCHLD):
                # One that is ignored (nohup) stays ignored, for the program as well.
                if number == signal.SIGCHLD or signal.getsignal(number) != signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._note)
            self._old_wakeup = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        return self

    def __exit__(self, *exc: object) -> None:
        with _held_back():  # what comes now is for the handlers of before
            if self._old_wakeup is not None:
                signal.set_wakeup_fd(self._old_wakeup)
            for number, handler in self._previous.items():
                signal.signal(number, handler)
            os.kill(self._canary, signal.SIGKILL)
            os.waitpid(self._canary, 0)
            for fd in (self._wakeup, self._write_end, self._canary_heard):
                os.close(fd)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            self._received.append(number)
            self.seen.append(number)

    def wait(self, seconds: float) -> list[int]:
        """Sleep until a signal comes or the time is up; return those that unstall alone received."""
        ready, _, _ = select.select([self._wakeup], [], [], seconds)
        if ready:
            try:
                os.read(self._wakeup, 4096)
            except BlockingIOError:
                pass
        if not self._received:
            return []
        received, self._received = self._received, []
        heard = self._heard_by_group()
        return [number for number in received if number not in heard]

    def _heard_by_group(self) -> set[int]:
        ready, _, _ = select.select([self._canary_heard], [], [], _GRACE_S)
        return set(os.read(self._canary_heard, 4096)) if ready else set()


@contextlib.contextmanager
def _held_back() -> Iterator[None]:
    """Signals wait meanwhile: none may be lost between two handlers, or leave the canary behind."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _start_canary() -> tuple[int, int]:
    """Fork the canary, with signals held back; returns the pipe that it writes their numbers to, and its pid."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read_end)
            while os.getppid() == parent:
                info = signal.sigtimedwait(FORWARDED, 1.0)
                if info is not None:
                    os.write(write_end, bytes([info.si_signo]))
        finally:
            os._exit(0)
    os.close(write_end)
    return read_end, pid
