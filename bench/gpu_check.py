"""Planted GPU bottlenecks, each with its fixed twin: does the trace name the pattern, and is the predicted gain true?

    make gpu-check        (or: python bench/gpu_check.py [--put docs/gpu-check.md])

Each case is recorded by torch.profiler and read by the code behind `unstall trace`; then both twins are timed without
a profiler, in turns. Without a GPU it says so and ends. Needs torch.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from machine import version
from marked import put_between_marks

STEPS = 20
ROUNDS = 4

Step = Callable[[], object]


class Case(NamedTuple):
    """A step with a planted bottleneck, the same without it, and what the trace should say of the first."""

    name: str
    pattern: str
    what_if: str
    """The what-if that stands for the fix."""
    make: Callable[[Any], tuple[Step, Step]]
    """Slow and fixed."""


def compute_bound(torch: Any) -> tuple[Step, Step]:
    """Large products in double the size they need."""
    big = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    half = big[:4096].contiguous()
    return lambda: [big @ big for _ in range(4)], lambda: [half @ big for _ in range(4)]


def launch_bound(torch: Any) -> tuple[Step, Step]:
    """Hundreds of tiny kernels; the twin replays them as a CUDA graph."""
    x = torch.randn(256, device="cuda")

    def step() -> Any:
        y = x
        for _ in range(400):
            y = y * 1.0001 + 0.1
        return y

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return step, graph.replay


def sync_bound(torch: Any) -> tuple[Step, Step]:
    """A value is read back after each small product; the twin reads once."""
    x = torch.randn(1024, 1024, device="cuda")

    def read_each() -> float:
        return sum((x @ x).sum().item() for _ in range(40))

    def read_once() -> float:
        return torch.stack([(x @ x).sum() for _ in range(40)]).sum().item()

    return read_each, read_once


def pageable_copies(torch: Any) -> tuple[Step, Step]:
    """A batch is copied from pageable memory in the step; the twin pins it and copies ahead on another stream."""
    host = torch.randn(32, 1024, 1024)
    pinned = host.pin_memory()
    weight = torch.randn(1024, 1024, device="cuda")
    side = torch.cuda.Stream()
    ahead = [host.cuda()]

    def slow() -> Any:
        return host.cuda() @ weight @ weight

    def fixed() -> Any:
        torch.cuda.current_stream().wait_stream(side)
        batch = ahead[0]
        with torch.cuda.stream(side):
            ahead[0] = pinned.to("cuda", non_blocking=True)
        return batch @ weight @ weight

    return slow, fixed


def host_compute(torch: Any) -> tuple[Step, Step]:
    """The CPU computes in Python between the kernels; the twin does not."""
    x = torch.randn(2048, 2048, device="cuda")

    def fixed() -> Any:
        return x @ x @ x

    def slow() -> Any:
        y = fixed()
        torch.cuda.synchronize()
        sum(i * i for i in range(100_000))
        return y

    return slow, fixed


def input_bound(torch: Any) -> tuple[Step, Step]:
    """The loader makes each batch slowly in the main process; the twin's dataset has them ready."""

    class Photos(torch.utils.data.Dataset):
        def __init__(self, slow: bool):
            self.slow = slow
            self.ready = torch.randn(3, 64, 64)

        def __len__(self) -> int:
            return 1_000_000

        def __getitem__(self, index: int) -> Any:
            return torch.randn(3, 256, 256)[:, ::4, ::4].contiguous() if self.slow else self.ready

    weight = torch.randn(64, 64, device="cuda")

    def steps(slow: bool) -> Step:
        batches = iter(torch.utils.data.DataLoader(Photos(slow), batch_size=16))
        return lambda: next(batches).cuda() @ weight

    return steps(True), steps(False)


CASES = (
    Case("large products", "compute-bound", "compute=0.5x", compute_bound),
    Case("400 tiny kernels", "overhead-bound", "launch=0", launch_bound),
    Case(".item() after each product", "sync-bound", "sync=0", sync_bound),
    Case("pageable copies", "transfer-bound", "copies=overlapped", pageable_copies),
    Case("Python between kernels", "host-bound", "host=0", host_compute),
    Case("slow loader, 0 workers", "input-bound", "data=0", input_bound),
)


def diagnose(torch: Any, step: Step, what_if: str) -> tuple[str, float]:
    """The pattern of a recorded run of this step, and the gain that the replay predicts for a what-if."""
    from unstall.diagnose.trace_report import report
    from unstall.trace.ranks import Ranks
    from unstall.trace.readers import read

    activity = torch.profiler.ProfilerActivity
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        schedule = torch.profiler.schedule(wait=0, warmup=3, active=5, repeat=1)
        with torch.profiler.profile(activities=[activity.CPU, activity.CUDA], schedule=schedule) as profiler:
            for _ in range(8):
                step()
                profiler.step()
        profiler.export_chrome_trace(str(path))
        made = report(Ranks.of(read(path)), [], what_ifs=[what_if])
    assert made.trace is not None, "the profiler recorded no work of the device"
    return made.verdict.pattern, made.trace.what_ifs[0].gain


def seconds_a_step(torch: Any, step: Step) -> float:
    """Mean over steps, the device's work included."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / STEPS


def true_gain(torch: Any, slow: Step, fixed: Step) -> float:
    """Slow over fixed, timed in turns; the median of the rounds."""
    ratios = []
    for number in range(ROUNDS):
        pair = (slow, fixed) if number % 2 else (fixed, slow)
        times = {id(step): seconds_a_step(torch, step) for step in pair}
        ratios.append(times[id(slow)] / times[id(fixed)])
    return statistics.median(ratios)


def check(torch: Any) -> list[tuple[str, str, str, float, float]]:
    """One row a case: name, expected and found pattern, predicted and true gain."""
    rows = []
    for case in CASES:
        slow, fixed = case.make(torch)
        for step in (slow, fixed):
            seconds_a_step(torch, step)
        found, predicted = diagnose(torch, slow, case.what_if)
        rows.append((case.name, case.pattern, found, predicted, true_gain(torch, slow, fixed)))
        print(f"{case.name}: {found}, predicted {predicted:.2f}×, true {rows[-1][-1]:.2f}×", file=sys.stderr)
    return rows


def table(rows: list[tuple[str, str, str, float, float]], device: str) -> str:
    """The rows as Markdown, with version, device and date."""
    lines = [
        f"Version {version('src', 'bench')}, {device}, {date.today().isoformat()}.",
        "",
        "| case | expected | found | predicted gain | true gain |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [f"| {n} | {e} | {f} | {p:.2f}× | {t:.2f}× |" for n, e, f, p, t in rows]
    return "\n".join(lines)


def main() -> int:
    """Run all cases; the exit status is 1 when a pattern is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--put", type=Path, help="put the table between the marks in this file")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("torch is not installed: nothing to check")
        return 0
    if not torch.cuda.is_available():
        print("no GPU here: nothing to check")
        return 0
    rows = check(torch)
    text = table(rows, torch.cuda.get_device_name())
    print(text)
    if options.put:
        put_between_marks(options.put, "bench/gpu_check.py", text)
    return int(any(expected != found for _, expected, found, _, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
