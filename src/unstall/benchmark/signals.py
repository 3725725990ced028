"""Signals while the program runs: each that unstall alone received is to be passed on, as if unstall were the program.

A Ctrl-C in the terminal, or ``timeout``, signals the whole process group, the program included; ``kill`` and a
scheduler may signal unstall alone, and then the program must get it. A canary, a process of our group that does
nothing but collect signals, tells the two apart: what it received, the program received.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections import Counter
from collections.abc import Collection
from types import FrameType
from typing import Any

from unstall.benchmark.thresholds import SIGNAL_GRACE_S

ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""Those that ask for an end of unstall too."""
STOPPING = frozenset({signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
"""Those of a shell's job control."""
RELAYED = frozenset(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
"""Those that a program can be sent. The first two cannot be caught; the third is that a child of ours has ended."""

_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS}
_SELF_INFLICTED = {signal.SIGPIPE, signal.SIGXFSZ}
_NEVER_HANDLED = _FAULTS | _SELF_INFLICTED | {signal.SIGTTIN, signal.SIGTTOU}
"""A handler would be called for ever (the instruction or the write is tried again); blocked, they can be collected."""
_FORGOTTEN_S = 1.0


class Signals:
    """Notices requests to end this process, and wakes up for them and for the end of a child; a context manager.

    A request that is ignored, as under nohup, stays so.
    """

    def __init__(self) -> None:
        self.end_requests: list[int] = []
        """The requests to end (:data:`ENDING`) that came."""
        self._handled: dict[int, Any] = {}
        self._old_wakeup: int | None = None
        self._wakeup, self._write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():  # Python lets no other handle signals
            for number in (*self._numbers(), signal.SIGCHLD):
                self._handled[number] = signal.signal(number, _note)
            self._old_wakeup = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._old_wakeup is not None:
            signal.set_wakeup_fd(self._old_wakeup)
        for number, handler in self._handled.items():
            signal.signal(number, handler)
        for fd in (self._wakeup, self._write_end):
            os.close(fd)

    def wait(self, seconds: float) -> list[int]:
        """Sleep until a signal comes or the time is up; return those that came, every delivery of each."""
        select.select([self._wakeup], [], [], seconds)
        try:
            woken_by = os.read(self._wakeup, 1 << 16)
        except BlockingIOError:
            return []
        received = [number for number in woken_by if number in self._handled and number != signal.SIGCHLD]
        self.end_requests += [number for number in received if number in ENDING]
        return received

    def _numbers(self) -> Collection[int]:
        """The signals to handle."""
        return [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]


class SignalRelay(Signals):
    """Collects every signal that is meant for the program; ``wait`` returns those that the program has not got.

    What other code of this process handles stays with it, except for requests to end.
    """

    def __init__(self, *, grace_s: float = SIGNAL_GRACE_S) -> None:
        super().__init__()
        self._grace_s = grace_s
        self.stop_asked = False
        """Whether a signal of :data:`STOPPING` came since this process was last continued."""
        self.mask: set[int] = set()
        """The signals that were blocked before: what is started meanwhile is to have these blocked, and no others."""
        self._blocked: set[int] = set()
        self._by_canary: Counter[int] = Counter()
        """Received by the canary and not yet by this process."""
        self._canary_asked_at = 0.0

    def __enter__(self) -> SignalRelay:
        # Held back meanwhile: no signal may be lost between two handlers, or leave the canary behind.
        self.mask = {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, RELAYED)}
        try:
            self._canary = _Canary(RELAYED)
            if threading.current_thread() is threading.main_thread():
                self._blocked = {number for number in RELAYED if self._must_be_blocked(number)}
            super().__enter__()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, self.mask | self._blocked)
        return self

    def __exit__(self, *exc: object) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, RELAYED)
        super().__exit__()
        self._canary.close()
        while signal.sigtimedwait(RELAYED - ENDING | self._blocked, 0):
            pass  # for the program, which has ended; a request to end is for the handlers of before
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)

    def wait(self, seconds: float) -> list[int]:
        """Sleep until a signal comes or the time is up; return those that unstall alone received."""
        received = super().wait(seconds) + self._collect_blocked()
        for number in received:
            if number in STOPPING or number == signal.SIGCONT:
                self.stop_asked = number != signal.SIGCONT
        return self._not_received_by_program(received) if received else []

    def stop(self, number: int) -> None:
        """Be stopped by a signal, as the program was, until somebody continues this process."""
        self.stop_asked = False
        if number == signal.SIGSTOP:
            os.kill(os.getpid(), number)
            return
        handler = signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(number, handler)

    def _must_be_blocked(self, number: int) -> bool:
        """One that is ignored (nohup) or blocked stays so for unstall, but the program may have changed that."""
        return number in _NEVER_HANDLED or number in self.mask or signal.getsignal(number) == signal.SIG_IGN

    def _numbers(self) -> Collection[int]:
        free = (signal.SIG_DFL, signal.default_int_handler)
        numbers = RELAYED - self._blocked
        return [number for number in numbers if number in ENDING or signal.getsignal(number) in free]

    def _collect_blocked(self) -> list[int]:
        numbers = []
        while self._blocked and (info := signal.sigtimedwait(self._blocked, 0)) is not None:
            if not (info.si_signo in _SELF_INFLICTED and info.si_pid == os.getpid()):  # by a write of unstall's own
                numbers.append(info.si_signo)
        return numbers

    def _not_received_by_program(self, received: list[int]) -> list[int]:
        """Those that the canary did not receive."""
        wanted: Counter[int] = Counter()
        for number in received:
            wanted[number] = wanted[number] + 1 if number >= signal.SIGRTMIN else 1  # only those are queued
        self._ask()
        if self._missed_by_canary(wanted):
            time.sleep(self._grace_s)
            self._ask()
        alone = self._missed_by_canary(wanted)
        for number, count in wanted.items():
            self._by_canary[number] = max(0, self._by_canary[number] - count) if number >= signal.SIGRTMIN else 0
        return alone

    def _missed_by_canary(self, wanted: Counter[int]) -> list[int]:
        """Those that it did not receive. Stop signals and SIGCONT discard each other while they are pending."""
        missed = wanted - self._by_canary
        if any(self._by_canary[number] for number in STOPPING):
            del missed[signal.SIGCONT]
        if self._by_canary[signal.SIGCONT]:
            missed = Counter({number: count for number, count in missed.items() if number not in STOPPING})
        return list(missed.elements())

    def _ask(self) -> None:
        """Ask the canary. It may be ahead of this process: what it has received counts for a while."""
        now = time.monotonic()
        if now - self._canary_asked_at > _FORGOTTEN_S:
            self._by_canary.clear()
        self._by_canary.update(self._canary.received())
        self._canary_asked_at = now


def ignore_messages() -> None:
    """For when the program has ended: what a scheduler still sends to it must not end its report."""
    for number in RELAYED - ENDING - STOPPING - _FAULTS - {signal.SIGQUIT, signal.SIGABRT, signal.SIGCONT}:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.SIG_IGN)


def _note(number: int, frame: FrameType | None) -> None:
    """That the signal came is in the wake-up pipe."""


class _Canary:
    """A process that collects signals. Make it with all of them blocked."""

    def __init__(self, numbers: Collection[int]) -> None:
        answers, write_end = os.pipe2(os.O_CLOEXEC)
        read_end, questions = os.pipe2(os.O_CLOEXEC)
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(questions)
                os.close(answers)
                _answer(read_end, write_end, parent, numbers)
            finally:
                os._exit(0)
        os.close(write_end)
        os.close(read_end)
        self._questions, self._answers = questions, answers

    def received(self) -> list[int]:
        """The signals that it received since it was last asked, each as often as it came."""
        with contextlib.suppress(OSError):  # somebody has killed it
            os.write(self._questions, b"?")
        answer = b""
        while not answer.endswith(b"\0") and (read := os.read(self._answers, 4096)):
            answer += read
        return list(answer.rstrip(b"\0"))

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._questions)
        os.close(self._answers)


def _answer(questions: int, answers: int, parent: int, numbers: Collection[int]) -> None:
    """In the canary, as long as there is unstall."""
    while os.getppid() == parent:
        ready, _, _ = select.select([questions], [], [], 1.0)
        if not ready:
            continue
        if not os.read(questions, 1):
            return
        received = []
        while (info := signal.sigtimedwait(numbers, 0)) is not None:
            received.append(info.si_signo)
        os.write(answers, bytes(received) + b"\0")
