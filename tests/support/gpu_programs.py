"""Made-up programs on a made-up device, whose traces are as torch.profiler writes them: times in microseconds.

The device is simulated while the program is written down, so that a program and its fixed twin have true step times
to compare predictions with.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kineto_files as files

from unstall.trace.readers import read
from unstall.trace.timeline import Timeline

LATENCY = 4.0
GAP = 1.0
CALL = 5.0


class Program:
    """A host thread that launches work on streams; ``now`` is its clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events: list[dict[str, Any]] = []
        self.free: dict[tuple[int, int], float] = {}
        self.calls = 0
        self.steps = 0

    def busy(self, dur: float, name: str = "", cat: str = "python_function") -> None:
        """The host computes; without a name nothing in the trace says what."""
        if name:
            self.events.append(files.host(name, self.now, dur, cat))
        self.now += dur

    @contextmanager
    def inside(self, name: str, cat: str = "cpu_op", **args: Any):
        """An event around others."""
        began = self.now
        yield
        self.events.append(files.host(name, began, self.now - began, cat, **args))

    @contextmanager
    def step(self):
        """One iteration."""
        self.steps += 1
        with self.inside(f"ProfilerStep#{self.steps}", "user_annotation"):
            yield

    def launch(
        self,
        dur: float,
        kernel: str = "mul_kernel",
        operator: str = "aten::mul",
        *,
        before: float = 10.0,
        call: float = CALL,
        stream: int = 7,
        device: int = 0,
        after: float = 0.0,
    ) -> float:
        """An operator that launches a kernel; returns when that will be done. ``after``: it waits for that time."""
        with self.inside(operator):
            self.now += before
            self.calls += 1
            self.events.append(files.api("cudaLaunchKernel", self.now, call, self.calls))
            end = self._work(kernel, dur, max(self.now + LATENCY, after), "kernel", stream, device)
            self.now += call
        return end

    def graph(self, durations: list[float]) -> None:
        """One launch for many kernels."""
        self.calls += 1
        self.events.append(files.api("cudaGraphLaunch", self.now, 20, self.calls))
        for dur in durations:
            self._work("graph_kernel", dur, self.now + LATENCY, "kernel", 7, 0, graph_node_id=7)
        self.now += 20

    def copy(
        self,
        dur: float,
        direction: str = "DtoH",
        memory: str = "Pageable",
        size: int = 4,
        operator: str = "aten::copy_",
        *,
        early: float = -2.0,
    ) -> None:
        """A copy; from and to pageable memory the call returns when it is done, or this much earlier."""
        ends = {"DtoH": f"Device -> {memory}", "HtoD": f"{memory} -> Device"}[direction]
        with self.inside(operator):
            self.calls += 1
            began = self.now
            end = self._work(f"Memcpy {direction} ({ends})", dur, began + LATENCY, "gpu_memcpy", 7, 0, bytes=size)
            self.now = end - early if memory == "Pageable" else began + CALL
            self.events.append(files.api("cudaMemcpyAsync", began, self.now - began, self.calls))

    def sync(self, name: str = "cudaDeviceSynchronize") -> None:
        """The host waits until the device is done."""
        self.calls += 1
        began = self.now
        self.now = max([self.now + 2, *(end + 2 for end in self.free.values())])
        self.events.append(files.api(name, began, self.now - began, self.calls))

    def batch(self, dur: float, loader: str = "_SingleProcessDataLoaderIter") -> None:
        """The loop asks its DataLoader for a batch."""
        self.busy(dur, f"enumerate(DataLoader)#{loader}.__next__", "user_annotation")

    def step_us(self) -> float:
        """The true mean step, until host and device are done."""
        return max([self.now, *self.free.values()]) / max(self.steps, 1)

    def document(self, **entries: Any) -> dict[str, Any]:
        return files.document(self.events, **entries)

    def timeline(self, **entries: Any) -> Timeline:
        with tempfile.TemporaryDirectory() as folder:
            return read(files.write(Path(folder) / "trace.json", self.document(**entries)))[0]

    def _work(self, name: str, dur: float, ready: float, cat: str, stream: int, device: int, **args: Any) -> float:
        start = max(ready, self.free.get((device, stream), -GAP) + GAP)
        self.events.append(files.work(name, start, dur, self.calls, cat, stream, device, **args))
        self.free[device, stream] = start + dur
        return start + dur


def launch_bound(steps: int = 4, kernels: int = 50, kernel_us: float = 3.0) -> Program:
    """Small kernels, each done before the next is launched."""
    program = Program()
    for _ in range(steps):
        with program.step():
            for _ in range(kernels):
                program.launch(kernel_us)
        program.sync()
    return program


def compute_bound(steps: int = 4, kernels: int = 50) -> Program:
    """The same host, kernels of 60 times the length: the queue is deep."""
    return launch_bound(steps, kernels, 180.0)


def reads_back(steps: int = 4, every: int = 1) -> Program:
    """Each kernel's result is read back by ``.item()``, or one of so many."""
    program = Program()
    for _ in range(steps):
        with program.step():
            for number in range(24):
                program.launch(60.0)
                if number % every == every - 1:
                    with program.inside("aten::item"):
                        program.copy(2.0, operator="aten::_local_scalar_dense")
                    program.busy(30.0)
        program.sync()
    return program


def waits_for_data(steps: int = 4, wait: float = 3000.0) -> Program:
    """The loader is slow, then the device has a millisecond of work."""
    program = Program()
    for _ in range(steps):
        with program.step():
            program.batch(wait)
            for _ in range(20):
                program.launch(50.0)
        program.sync()
    return program


def busy_host(steps: int = 4, gap: float = 4000.0) -> Program:
    """NumPy work of the host's own before the kernels."""
    program = Program()
    for _ in range(steps):
        with program.step():
            program.busy(gap, "train.py(12): preprocess")
            for _ in range(20):
                program.launch(50.0)
        program.sync()
    return program


def copies(steps: int = 4, memory: str = "Pageable") -> Program:
    """A large batch is copied in every step."""
    program = Program()
    for _ in range(steps):
        with program.step():
            program.copy(1000.0, "HtoD", memory, 12_000_000)
            for _ in range(10):
                program.launch(50.0)
        program.sync()
    return program


def reduces(steps: int = 4, overlapped: bool = False) -> Program:
    """A collective of a millisecond in every step, beside the kernels or after them."""
    program = Program()
    for _ in range(steps):
        with program.step():
            ends = [program.launch(100.0) for _ in range(10)]
            after = ends[0] if overlapped else ends[-1]
            done = program.launch(
                900.0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "c10d::allreduce_", stream=20, after=after
            )
            program.launch(50.0, after=done)
        program.sync()
    return program
