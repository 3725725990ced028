"""Measurements, stacks and source files, as small as a test of the diagnosis needs them."""

from __future__ import annotations

import textwrap

from unstall.diagnose.features import HostFeatures, build
from unstall.diagnose.overview import RunContext
from unstall.records.measurements import Measurement, SeamSite
from unstall.records.observations import Frame, Observation, ResourcePoint, StackSample
from unstall.records.report import PhaseTime, SpanTime, Startup
from unstall.records.run import StepTime

MAIN_PID, WORKER_PID = 100, 200


def measurement(phases, **more) -> Measurement:
    """A loop of 200 steps; ``phases``: seconds, or a Phase, by name."""
    seconds = {name: phase.mean_s if isinstance(phase, PhaseTime) else phase for name, phase in phases.items()}
    step = sum(seconds.values())
    values = {
        "kind": "optimizer",
        "steps": 200,
        "warmup": 5,
        "total_steps": 205,
        "step": StepTime(step, step, 1.1 * step),
        "phases": [
            phase
            if isinstance(phase, PhaseTime)
            else PhaseTime(name=name, share=phase / step, mean_s=phase, p95_s=phase)
            for name, phase in phases.items()
        ],
        "cores": 4.0,
        "main_pid": MAIN_PID,
        "rank_pids": frozenset({MAIN_PID}),
        "regular_s": step,
        "main_cpu_s": step,
        "spread": 0.01,
        "samples": [],
        "spans": [SpanTime(name="mine", count=4, total_s=2.0, mean_s=0.5)],
        "startup": Startup(
            before_first_batch_s=0.5, worker_start_s=0.5, warmup_s=0.5, epoch_gaps_s=0.5, after_last_step_s=0.5
        ),
    }
    return Measurement(**{**values, **more})


def features(phases, **more) -> HostFeatures:
    return build(measurement(phases, **more))


def waiting(name, seconds, *, blocked=0.0, network=0.0) -> PhaseTime:
    """A phase part of which is blocked or in the network; seconds."""
    return PhaseTime(name=name, share=0.5, mean_s=seconds, p95_s=seconds, blocked_s=blocked, network_s=network)


def lib(path, function, line=10) -> Frame:
    """A frame of an installed package."""
    return Frame(function, f"/env/lib/python3.11/site-packages/{path}", line)


def std(path, function, line=10) -> Frame:
    """A frame of the standard library."""
    return Frame(function, f"/usr/lib/python3.11/{path}", line)


NEXT = lib("torch/utils/data/dataloader.py", "__next__")
FETCH = lib("torch/utils/data/_utils/fetch.py", "fetch")
CALL = lib("torch/nn/modules/module.py", "_call_impl")
BACKWARD = lib("torch/autograd/__init__.py", "backward")
STEP = lib("torch/optim/adam.py", "step")
WORKER = lib("torch/utils/data/_utils/worker.py", "_worker_loop")


def stack(*frames, count=50, pid=MAIN_PID, main=True) -> StackSample:
    """A sample, outermost frame first."""
    return StackSample(pid, "MainThread" if main else "Thread-1", tuple(frames), count, main)


LAYOUTS = ("script", "installed")
"""Where a program's modules may lie: in the working directory, or in a package that a driver calls."""


class Source:
    """A file of the program's; lines are named by what stands on them."""

    def __init__(self, path, text, layout="script"):
        if layout == "installed":
            path = path.parent / "site-packages" / "planted" / path.name
            path.parent.mkdir(parents=True)
        self.file = str(path)
        self.text = textwrap.dedent(text).lstrip("\n")
        path.write_text(self.text)

    def line(self, snippet):
        """Number of the one line that holds ``snippet``."""
        (number,) = [n for n, line in enumerate(self.text.splitlines(), 1) if snippet in line]
        return number

    def at(self, function, snippet) -> Frame:
        return Frame(function, self.file, self.line(snippet))

    def site(self, seam, function, snippet, *callers) -> SeamSite:
        """Where a seam is called; ``callers``: (function, snippet), innermost first."""
        above = tuple((self.file, name, self.line(where)) for name, where in callers)
        return SeamSite(seam, self.file, function, self.line(snippet), above)


def run(*, stopped=False, **more) -> RunContext:
    points = [ResourcePoint(t, pid, 1.0, 0.0, 5_000_000) for t in (1000.0, 1000.5) for pid in (MAIN_PID, WORKER_PID)]
    seen = Observation(999.0, 1012.5, points=points, stopped=stopped)
    values = {
        "id": "20250301-101500-4711",
        "command": ["train.py", "--epochs", "1"],
        "started": "2025-03-01T10:15:00Z",
        "exit_code": 0,
        "environment": {"python": "3.11"},
        "observation": seen,
    }
    return RunContext(**{**values, **more})
