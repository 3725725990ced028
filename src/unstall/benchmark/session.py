"""Watch a running program from outside: its resources, its stacks in windows, its progress, until it ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from unstall.benchmark.cut_stacks import with_whole_stacks
from unstall.benchmark.resources import ResourceMonitor
from unstall.benchmark.sampler import Sampler
from unstall.benchmark.thresholds import (
    FIRST_RATE_S,
    GPU_WINDOW_AFTER,
    LONG_PAUSE_S,
    LONG_PAUSE_STEPS,
    LONG_RUN_S,
    MANY_STEPS,
    MOST_WARM_UP,
    NO_STEP_YET_S,
    POLL_S,
    PROBE_AFTER_S,
    PROBE_GROWTH_BYTES,
    PROBE_PATIENCE_S,
    PROBE_SLOWER,
    RATE_OF_FEW_S,
    RATE_S,
    SAMPLES_PATIENCE_S,
    SAMPLES_WANTED,
    SELDOM_POLL_S,
    SETTLED_FOLDER_NS,
    WARM_UP_STEPS,
)
from unstall.child.recording import drives, steps_of
from unstall.child.tap import Tap
from unstall.child.watcher import CALL, PROBE, SAMPLE, STOP
from unstall.records.observations import Observation


class Session:
    """Poll it every :attr:`poll_s` seconds while the program runs."""

    def __init__(
        self,
        pid: int,
        directory: Path,
        *,
        steps: int | None = None,
        sampling: bool = True,
        probing: bool = True,
        gpu_window: bool = False,
        clock: Callable[[], float] = time.monotonic,
        resources: ResourceMonitor | None = None,
    ):
        self.pid = pid
        self._clock = clock
        self.probing = probing
        self._gpu_window_due = gpu_window
        self.directory = directory
        self.wanted = steps
        self.began = clock()
        self.stopped = False
        """Whether unstall has asked the program to end, after the steps asked for."""
        self.disturbed: list[tuple[float, float]] = []
        """When Ctrl-Z held the program up; what unstall does within it, the program's own facts tell."""
        self.resources = resources or ResourceMonitor(pid)
        self.sampler = Sampler(pid, directory) if sampling else None
        self.taps: dict[Path, Tap] = {}
        self._listed_ns = 0
        self.steps = 0
        self.clean_steps = 0
        self._stepped_at = 0.0
        self._rate: tuple[float, int] | None = None
        self.rate: float | None = None
        self._first_rate = 0.0
        self._loop_began: float | None = None
        self._rss_then = 0
        self._probes = 0
        self._probing: tuple[float, Tap] | None = None
        self._satisfied_at: float | None = None
        self._fell_back = False
        self._stale_samples = False

    @property
    def poll_s(self) -> float:
        """Seconds until the next poll: of a long run more, unless it is to stop at a step or a window is open."""
        is_long = self._clock() - self.began > LONG_RUN_S
        is_sampling = self.sampler is not None and self.sampler.process_pid is not None
        return SELDOM_POLL_S if is_long and self.wanted is None and not is_sampling else POLL_S

    def poll(self) -> None:
        """Take every look that is due."""
        now = self._clock()
        self.resources.poll(now)
        self._count_steps(now)
        if self.sampler is not None:
            self._drop_stale_samples(self.sampler)
            in_loop = self.steps > WARM_UP_STEPS or now - self.began > NO_STEP_YET_S
            self.sampler.enabled = in_loop and not self._lacks_clean_steps(self.sampler)
            self.sampler.in_pause = self.stands_still(now)
            self.sampler.poll(now)
            self._drop_stale_samples(self.sampler)
            if self.sampler.process_pid is not None:
                self.resources.ignore.add(self.sampler.process_pid)
            if self.sampler.failure is not None and not self._fell_back:
                self._fall_back()
        self._ask_for_gpu_window()
        self._probe(now)
        if self._enough(now):
            self.stop()

    def finish(self) -> Observation:
        """The program has ended: close everything and hand over what was seen."""
        sampler = self.sampler
        if sampler is not None:
            sampler.close()
        seen = Observation(
            began=self.began,
            ended=self._clock(),
            points=self.resources.points,
            machine=self.resources.machine,
            samples=sampler.samples if sampler else [],
            lost=sampler.lost if sampler else 0,
            before_loop=sampler.before if sampler else [],
            windows=sampler.stacks if sampler else [],
            pauses=sampler.pauses if sampler else [],
            disturbed=self.disturbed,
            sampled=sampler.windows if sampler else [],
            sampling_failure=sampler.failure if sampler else None,
            stopped=self.stopped,
        )
        return with_whole_stacks(seen)

    @property
    def main(self) -> Tap | None:
        """The recording of the process that drives the loop, once there is one."""
        taps = [tap for tap in self.taps.values() if steps_of(tap.ticks)]
        # A process that only steps an environment is another's worker, if there is one that runs a model.
        return max(taps, key=lambda tap: (drives(tap.ticks), steps_of(tap.ticks)), default=None)

    def _drop_stale_samples(self, sampler: Sampler) -> None:
        """Stacks from before the loop, imports and set-up, say nothing of its steps.

        A window that is open as the loop begins is dropped once it is read, and none that begins in the loop.
        """
        if self._stale_samples and sampler.process_pid is None:
            self._stale_samples = False
            sampler.forget()

    def _fall_back(self) -> None:
        """py-spy may not attach: the processes that run a loop sample themselves."""
        for tap in self.taps.values():
            if steps_of(tap.ticks) and tap.control != CALL:
                tap.control = SAMPLE
                self._fell_back = True

    def _count_steps(self, now: float) -> None:
        self._find_recordings()
        steps = max((steps_of(tap.ticks) for tap in self.taps.values()), default=0)
        sampling = self.sampler is not None and self.sampler.process_pid is not None
        if steps > WARM_UP_STEPS and not sampling and self._probing is None:
            self.clean_steps += steps - max(self.steps, WARM_UP_STEPS)
        if steps > WARM_UP_STEPS and self._loop_began is None:
            self._loop_began = now
            self._stale_samples = True
            self._rss_then = self.resources.rss_bytes()
            self._rate = (now, steps)  # or the first rate would count the time before the loop, and none be slower
        if steps > self.steps:
            self._stepped_at = now
        self.steps = steps
        if self._rate is None or now - self._rate[0] > (
            RATE_OF_FEW_S if steps < self._rate[1] + MANY_STEPS else RATE_S
        ):
            if self._rate is not None and steps > self._rate[1]:
                self.rate = (steps - self._rate[1]) / (now - self._rate[0])
                if self._loop_began is not None and (not self._first_rate or now - self._loop_began < FIRST_RATE_S):
                    self._first_rate = max(self._first_rate, self.rate)
            self._rate = (now, steps)

    def _find_recordings(self) -> None:
        """Those that were begun since the last poll; the folder is listed only where something was made in it."""
        try:
            changed_ns = self.directory.stat().st_mtime_ns
        except OSError:
            return  # somebody removed it: what was found stays readable
        if changed_ns == self._listed_ns:
            return
        # Two files may be made within one tick of the clock that folders bear, and the second shows only in the list.
        self._listed_ns = changed_ns if time.time_ns() - changed_ns > SETTLED_FOLDER_NS else 0
        for path in self.directory.glob("rec-*.bin"):
            if path not in self.taps:
                try:
                    self.taps[path] = Tap(path)
                except (OSError, ValueError):
                    self._listed_ns = 0  # just being made

    def stands_still(self, now: float) -> bool:
        """Whether no step has been made for long: the program evaluates, saves, or does what else is between steps."""
        if self._loop_began is None or not self.rate:
            return False
        return now - self._stepped_at > max(LONG_PAUSE_S, LONG_PAUSE_STEPS / self.rate)

    def _ask_for_gpu_window(self) -> None:
        """Once, of every process that runs the loop, after the early looks at its first steps."""
        if self._gpu_window_due and self.steps > GPU_WINDOW_AFTER and self._probing is None:
            self._gpu_window_due = False
            for tap in self.taps.values():
                if steps_of(tap.ticks):
                    tap.control = CALL

    def _probe(self, now: float) -> None:
        """Ask the program's main process for a look at what it keeps, while its memory or its step grows."""
        if self._probing is not None:
            requested, tap = self._probing
            if tap.control != PROBE or now - requested > PROBE_PATIENCE_S:
                self._probing = None
            return
        if not self.probing or self._loop_began is None or self._probes >= len(PROBE_AFTER_S):
            return
        due = now - self._loop_began >= PROBE_AFTER_S[self._probes]
        if due and any(tap.control == CALL for tap in self.taps.values()):
            return  # a GPU window is being recorded: afterwards
        if due and (self._probes < 1 or self._grows()):
            tap = max(self.taps.values(), key=lambda tap: steps_of(tap.ticks))
            tap.control = PROBE
            self._probing = (now, tap)
            self._probes += 1
        elif due:
            self._probes += 1

    def _grows(self) -> bool:
        """Whether the program has more memory than at first, or takes longer over a step."""
        slower = self.rate is not None and self.rate < PROBE_SLOWER * self._first_rate
        return slower or self.resources.rss_bytes() > self._rss_then + PROBE_GROWTH_BYTES

    def _enough(self, now: float) -> bool:
        if self.wanted is None or self.clean_steps < self.wanted + self._reserve():
            return False
        if self._satisfied_at is None:
            self._satisfied_at = now
        sampled = self.sampler is None or self.sampler.enough(SAMPLES_WANTED)
        return sampled or now - self._satisfied_at > SAMPLES_PATIENCE_S

    def _lacks_clean_steps(self, sampler: Sampler) -> bool:
        """Whether only steps are missing in which nobody looks: a further window would cost some of them."""
        return self.wanted is not None and self.steps >= self.wanted and sampler.enough(SAMPLES_WANTED)

    def _reserve(self) -> int:
        """Steps beyond those wanted that the report may leave out: warm-up, and the edges of each window."""
        windows = len(self.sampler.windows) if self.sampler is not None else 0
        return 3 + int(MOST_WARM_UP * self.steps) + 2 * windows

    def stop(self) -> None:
        """Let the program unwind at its next step."""
        self.stopped = True
        for tap in self.taps.values():
            if steps_of(tap.ticks):
                tap.control = STOP
