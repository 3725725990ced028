"""A short look at the GPU: torch.profiler over a few steps after warm-up, and step times by CUDA events.

Runs in the user's process. The parent asks for it once by the control word; a process that has not initialised CUDA (or
ROCm, which torch calls by the same names) declines. From then on it is called at every seam of the main
thread until the window is done. The parent leaves the steps of the window out of what it measures.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from unstall.child import recording, seams
from unstall.records.vocabulary import Tick, seam_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from unstall.child.main import Child

EVENT_STEPS = 10
"""Steps timed by CUDA events before the profiler starts: it would slow them."""

_OF_PROFILERS = ("NSYS_PROFILING_SESSION_ID", "CUDA_INJECTION64_PATH", "ROCPROFILER_LIBRARY_CTOR")
"""Variables that Nsight Systems, other tools of CUPTI's and ROCm's profiler set for what they watch."""
_LETS_GO = "TEARDOWN_CUPTI"
"""With 1 in it, torch's profiler detaches from the driver at its end (pytorch/kineto#1264). It would stay, and each
launch of the rest of the run take longer, by a fifth and more on an H100 (docs/gpu-check.md)."""
_SAFE_SINCE = (12, 6)
"""The first CUDA in which a program with CUDA graphs of its own outlives that (pytorch/pytorch#150957)."""
_SEAMS_TO_LEARN = 40
"""Seams after which the surest of them counts the steps."""


def install(child: Child) -> None:
    """Wait for the parent's request; the number of steps is in the settings as ``gpu_window``."""
    steps = int(child.options.get("settings", {}).get("gpu_window", 0))
    if steps > 0:
        child.on_control = WindowRecorder(child, steps).on_seam


class WindowRecorder:
    """Called at each seam of the main thread from the parent's request on; see :meth:`on_seam`."""

    def __init__(self, child: Child, steps: int):
        self._child = child
        self._steps = steps
        self._calls: dict[str, int] = {}
        self._seam: str | None = None
        self._stage: Callable[[], None] = self._time_step
        self._events: list[Any] = []
        self._profiler: Any = None
        self._profiled = 0
        self._began = 0.0
        self._lets_go = False
        self._guards: list[tuple[Any, str, Any]] = []
        self._done = False

    def on_seam(self, seam: str) -> None:
        """A seam begins. Whatever goes wrong ends the window and is reported; nothing reaches the program."""
        try:
            if self._done or not _cuda_in_use():
                self._finish()
            elif sys.modules["torch"].cuda.is_current_stream_capturing():
                return  # an event or a profiler that starts now would end the program's recording of a CUDA graph
            elif self._is_step(seam):
                self._stage()
        except Exception as error:
            self._child.emit_fact("error", what="GPU window", error=repr(error))
            self._unguard()
            self._profiler = None
            self._finish()

    def _is_step(self, seam: str) -> bool:
        """Whether this seam counts the steps. Which one does is learnt from the first calls."""
        if self._seam is None:
            self._calls[seam] = self._calls.get(seam, 0) + 1
            twice = [name for name, calls in self._calls.items() if calls >= 2]
            kinds = {name: kind for name in twice if (kind := _step_kind(name)) is not None}
            if kinds:
                surest = min(kinds, key=kinds.__getitem__)
                if kinds[surest] != Tick.FORWARD or sum(self._calls.values()) >= _SEAMS_TO_LEARN:
                    self._seam = surest
        return seam == self._seam

    def _time_step(self) -> None:
        """One event a step on the current stream; they are read only once the device has passed them all."""
        torch = sys.modules["torch"]
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self._events.append(event)
        if len(self._events) > EVENT_STEPS:
            self._stage = self._start

    def _start(self) -> None:
        torch = sys.modules["torch"]
        other = next((name for name in _OF_PROFILERS if os.environ.get(name)), None)
        if torch.autograd._profiler_enabled() or other:
            # Two that listen to the driver spoil each other's recording.
            who = f"another profiler watches it ({other})" if other else "the program profiles itself"
            self._child.emit_fact("error", what="GPU window", error=f"{who}: no window was recorded")
            self._finish()
            return
        activity = torch.profiler.ProfilerActivity
        self._began = time.monotonic()
        self._profiler = torch.profiler.profile(
            activities=[activity.CPU, activity.CUDA],
            schedule=torch.profiler.schedule(wait=0, warmup=1, active=self._steps, repeat=1),
            record_shapes=True,
        )
        self._guard(torch)
        atexit.register(self._stop, write=False)
        self._lets_go = _LETS_GO not in os.environ and _cuda_version(torch) >= _SAFE_SINCE
        if self._lets_go:
            os.environ[_LETS_GO] = "1"
        self._profiler.start()
        self._stage = self._step

    def _step(self) -> None:
        self._profiled += 1
        if self._profiled <= self._steps:
            self._profiler.step()
        else:
            self._stop(write=True)

    def _stop(self, *, write: bool) -> None:
        """End the profiler, if it runs; its file is written in the window, whose time is not measured."""
        self._unguard()
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            profiler.stop()
            if self._lets_go:
                os.environ.pop(_LETS_GO, None)
            if write:
                path = os.path.join(self._child.directory, f"gpu-{os.getpid()}.json")
                profiler.export_chrome_trace(path)
            self._child.emit_fact("window", what="gpu", began=self._began, ended=time.monotonic())
            self._finish()

    def _finish(self) -> None:
        """End the calls. The times of the events are reported if the device has passed them."""
        self._done = True
        recording.native.control(0)
        events, self._events = self._events, []
        if len(events) > 1 and events[-1].query():
            step_s = [a.elapsed_time(b) / 1e3 for a, b in pairwise(events)]
            self._child.emit_fact("gpu_steps", step_s=step_s)

    def _guard(self, torch: Any) -> None:
        """Only one profiler can run: if the program starts its own meanwhile, it has the right of way."""
        for owner, name in ((torch.profiler.profile, "start"), (torch.autograd.profiler.profile, "__enter__")):
            original = owner.__dict__.get(name) or getattr(owner, name)

            def yielding(instance: Any, *args: Any, _original: Any = original, **kwargs: Any) -> Any:
                mine = self._profiler
                if mine is not None and instance is not mine and instance is not getattr(mine, "profiler", None):
                    self._stop(write=False)
                return _original(instance, *args, **kwargs)

            self._guards.append((owner, name, owner.__dict__.get(name)))
            setattr(owner, name, yielding)

    def _unguard(self) -> None:
        for owner, name, original in self._guards:
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
        self._guards.clear()


def _step_kind(name: str) -> Tick | None:
    """The kind of step that a seam's calls may mark; kinds are in order, the surest first."""
    seam = seam_of(name, seams.all_seams())
    return seam.counts if seam is not None and seam.drives_loop else None


def _cuda_version(torch: Any) -> tuple[int, ...]:
    """That torch was built for; nothing where it was built for none."""
    return tuple(int(part) for part in (torch.version.cuda or "").split(".") if part.isdigit())


def _cuda_in_use() -> bool:
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda is not None and bool(cuda.is_initialized())
