"""Stack sampling from outside the program: py-spy in short windows, until the answer is known.

A window costs a quarter of a core or so while it lasts, and the steps it overlaps are not timed. So
the sampler has a budget and no rate to keep up: it stops once the shares are known well enough.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

from unstall.benchmark import ptrace
from unstall.benchmark.environment import usable_cores
from unstall.benchmark.stacks import lost_samples, merge, parse_raw, program_leaf, relevant
from unstall.benchmark.thresholds import (
    FEWEST_WINDOWS,
    HALF_WIDTH,
    LEAST_SAMPLE_RATE,
    MOST_PAUSE_WINDOWS,
    MOST_SAMPLES,
    SAMPLE_ATTEMPTS,
    SAMPLE_RATE,
    SAMPLER_STOP_S,
    SAMPLER_STUCK_S,
    SAMPLES_PER_CORE,
)
from unstall.processes import APART
from unstall.records.observations import StackSample, StackWindow

NOTHING_READABLE = "py-spy found no Python process that it can read"
"""What is said when py-spy was not allowed to read the program."""


def find_py_spy() -> str | None:
    """The py-spy executable installed with this interpreter, or else the one on the PATH."""
    folders = (sysconfig.get_path("scripts"), str(Path(sys.executable).parent))
    return shutil.which("py-spy", path=os.pathsep.join(folders)) or shutil.which("py-spy")


class Sampler:
    """Samples a process and its descendants with py-spy, without blocking the caller.

    Call :meth:`poll` about ten times a second and :meth:`close` at the end. A window begins only
    while :attr:`enabled` is set; an open one runs on when it is cleared.

    Args:
        pid: the process to watch, with all its descendants.
        directory: where the file of the open window lies; it is removed once read.
        window_s: length of a window, seconds.
        pause_s: shortest pause between two windows, seconds.
        stop_s: patience for py-spy to end at :meth:`close`, seconds.
        find: the path of py-spy, None where there is none.
        obstacle: why a process may not be read, if it may not.
    """

    def __init__(
        self,
        pid: int,
        directory: Path,
        *,
        window_s: float = 1.0,
        pause_s: float = 1.0,
        stop_s: float = SAMPLER_STOP_S,
        find: Callable[[], str | None] = find_py_spy,
        obstacle: Callable[[int], str | None] = ptrace.obstacle,
    ) -> None:
        self.pid = pid
        self.window_s = window_s
        self.pause_s = pause_s
        self.stop_s = stop_s
        self.obstacle = obstacle
        self.enabled = True
        self.windows: list[tuple[float, float]] = []
        """Monotonic start and end of each window, from py-spy's start to its exit; of none in a pause.

        A window slows steps a little. Of a pause it is a small part, and a pause that were left out for it would be
        missing from the mean step.
        """
        self.samples: list[StackSample] = []
        """What was seen so far, equal stacks summed; idle library threads left out."""
        self.lost = 0
        """How many more could not be read: the program changed its stack meanwhile."""
        self.stacks: list[StackWindow] = []
        """What each window saw. After the budget is met, there is one more each time that the run is twice as old."""
        self.in_pause = False
        """Whether the loop stands still, in an evaluation say: what is rare is looked at though all else is known."""
        self.pauses: list[StackWindow] = []
        """What was seen in such pauses, beyond what was due."""
        self._for_pause = False
        self._ended: float | None = None
        """When the last window did."""
        self.before: list[StackWindow] = []
        """What each window saw until it was told to begin anew."""
        self.main_samples = 0
        """How often the main thread that was seen most often was seen."""
        self.done = False
        """Whether the budget is met: the shares are known well enough, or it is used up."""
        self.failure: str | None = None
        """Why no stacks can be had, in one line; None as long as they can."""
        self._executable = find()
        self._output = directory / f"stacks-{os.getpid()}-{pid}.txt"
        self._process: subprocess.Popen[bytes] | None = None
        self.abandoned: subprocess.Popen[bytes] | None = None
        """One that did not end: whoever drops it would warn of a process that still runs."""
        self._started = 0.0
        self._interrupted = False
        self._failed_attempts = 0
        if self._executable is None:
            self.failure = "py-spy is not installed: pip install py-spy"

    @property
    def process_pid(self) -> int | None:
        """The py-spy process of the open window."""
        return self._process.pid if self._process else None

    def poll(self, now: float) -> None:
        """Begin, end or read a window, if it is time to. ``now`` is ``time.monotonic()``."""
        if self._process is None:
            if self._may_begin(now):
                self._for_pause = not self._is_due(now)
                self._begin(now)
        elif self._process.poll() is not None:
            self._finish(now)
        elif now - self._started >= self.window_s + SAMPLER_STUCK_S:
            self._give_up(now)
        elif now - self._started >= self.window_s and not self._interrupted:
            self._interrupt()

    def enough(self, samples: int) -> bool:
        """Whether the main thread was seen so often, or will not be seen more."""
        return self.failure is not None or self.done or self.main_samples >= samples

    def close(self) -> None:
        """End the open window, keep what it saw, and leave no process and no file behind."""
        process = self._process
        if process is None:
            return
        self._interrupt()
        try:
            process.wait(self.stop_s)
        except subprocess.TimeoutExpired:
            process.kill()
        try:
            process.wait(self.stop_s)
        except subprocess.TimeoutExpired:
            self._give_up(time.monotonic())
        else:
            self._finish(time.monotonic())

    def forget(self) -> None:
        """Begin anew: what was seen so far is not of the loop."""
        self.before = [*self.before, *self.stacks]
        self.samples, self.stacks, self.pauses = [], [], []
        self.lost, self.main_samples, self.done = 0, 0, False

    def _may_begin(self, now: float) -> bool:
        rested = self._ended is None or now - self._ended >= self.pause_s
        is_rare = self.in_pause and len(self.pauses) < MOST_PAUSE_WINDOWS
        return self.enabled and rested and self.failure is None and (self._is_due(now) or is_rare)

    def _is_due(self, now: float) -> bool:
        """Whether there is more to know, or the run is twice as old as at the last look."""
        if not self.done:
            return True
        first, last = self.windows[0][0], self.windows[-1][1]
        return now - first >= 2 * (last - first)

    def _begin(self, now: float) -> None:
        # py-spy takes whole seconds only: a SIGINT ends the window, and makes it write what it has.
        # The limit is for the case that unstall is killed before it can send one.
        limit_s = math.ceil(self.window_s) + 1
        command = [
            str(self._executable),
            *("record", "--pid", str(self.pid), "--subprocesses", "--threads", "--idle"),
            *("--nonblocking", "--full-filenames", "--format", "raw"),
            *("--rate", str(rate(_processes(self.pid), usable_cores()))),
            *("--duration", str(limit_s), "--output", str(self._output)),
        ]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=os.environ | {"RUST_BACKTRACE": "0"},
                **APART,
            )
        except OSError as error:
            self.failure = f"py-spy cannot be started: {error.strerror}"
            return
        self._started = now
        self._interrupted = False

    def _interrupt(self) -> None:
        if self._process is not None:
            self._interrupted = True
            self._process.send_signal(signal.SIGINT)

    def _give_up(self, now: float) -> None:
        """Go on without stacks from outside: on a busy machine a kernel was seen to give py-spy no time at all.

        Not even to end. While a window is open no step counts, so that a run would never be told to stop.
        """
        process, self._process = self._process, None
        assert process is not None
        process.kill()
        self.abandoned = process
        _take(self._output)
        self.windows.append((self._started, now))
        self.failure = f"py-spy did not end for {now - self._started:.0f} s: the machine is too busy"

    def _finish(self, now: float) -> None:
        process, self._process = self._process, None
        assert process is not None
        said, errors = (text.decode(errors="replace") for text in process.communicate())
        self._ended = now
        if not self._for_pause:
            self.windows.append((self._started, now))
        samples = relevant(parse_raw(_take(self._output)))
        if samples:
            seen = StackWindow((self._started + now) / 2, samples, lost_samples(said))
            (self.pauses if self._for_pause else self.stacks).append(seen)
            if not self.done:
                self._add(seen)
            self._failed_attempts = 0
        elif process.returncode not in (0, -signal.SIGINT) and _is_alive(self.pid):
            self._failed_attempts += 1
            if self._failed_attempts >= SAMPLE_ATTEMPTS:
                self.failure = _explain(errors, self.obstacle(self.pid))

    def _add(self, seen: StackWindow) -> None:
        self.samples = merge([*self.samples, *seen.samples])
        self.lost += seen.lost
        self.main_samples = max(_main_thread_counts(self.samples).values(), default=0)
        known = half_width(self.samples, self.pid) <= HALF_WIDTH
        self.done = self.main_samples >= MOST_SAMPLES or (known and len(self.windows) >= FEWEST_WINDOWS)


def half_width(samples: Iterable[StackSample], pid: int) -> float:
    """Half the 95 % interval of the largest share that a user's line has of main thread samples.

    The larger one of two: that of the watched process ``pid``, and that of all other processes
    seen in the user's code (loader workers, ranks) taken together. 1.0 without any samples.
    """
    lines: dict[bool, Counter[tuple[str, int] | None]] = {True: Counter(), False: Counter()}
    samples = [sample for sample in samples if sample.main_thread]
    in_program = {sample.pid for sample in samples if program_leaf(sample.frames)}
    for sample in samples:
        if sample.pid == pid or sample.pid in in_program:
            leaf = program_leaf(sample.frames)
            lines[sample.pid == pid][(leaf.file, leaf.line) if leaf else None] += sample.count
    return max((_half_width(counts) for counts in lines.values() if counts), default=1.0)


def rate(processes: int, cores: float) -> int:
    """Samples a second of each of so many processes: the budget is that of the machine."""
    return round(min(SAMPLE_RATE, max(LEAST_SAMPLE_RATE, SAMPLES_PER_CORE * cores / max(1, processes))))


def _processes(pid: int) -> int:
    """A process and its descendants."""
    try:
        return 1 + len(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return 1


def _half_width(lines: Counter[tuple[str, int] | None]) -> float:
    # Agresti and Coull (1998): two successes and two failures are added to a binomial share, so
    # that a share of 0 or 1 in few samples does not look certain.
    samples = lines.total()
    largest = max((count for line, count in lines.items() if line is not None), default=0)
    share = (largest + 2) / (samples + 4)
    return 1.96 * math.sqrt(share * (1 - share) / (samples + 4))


def _main_thread_counts(samples: Iterable[StackSample]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for sample in samples:
        if sample.main_thread:
            counts[sample.pid] += sample.count
    return counts


def _explain(errors: str, obstacle: str | None) -> str:
    """py-spy's complaint in one line that says what is in its way."""
    if obstacle is not None:
        return f"py-spy may not read the program: {obstacle}"
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    reason = next((line for line in lines if line.startswith("Error: ")), lines[0] if lines else "")
    if "No python processes found" in reason:
        # What py-spy says of a process that it was not allowed to read, too.
        return NOTHING_READABLE
    return f"py-spy failed: {reason.removeprefix('Error: ') or 'no reason given'}"


def _take(path: Path) -> str:
    """The text of a file, which is removed; empty if there is none."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    with contextlib.suppress(OSError):
        path.unlink()
    return text


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
