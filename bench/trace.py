"""How fast traces are read and answered, and in how much memory, beside HolisticTraceAnalysis and plain parsing.

    make trace-bench                                       all of it, and the table in docs/trace-speed.md
    python bench/trace.py --sizes small,medium --no-hta

The files are a small real trace, and a larger one twice, and often enough to pass 1 GB and 5 million events, in its
own layout, with times and ids moved on; gzipped, in a temporary folder. Each way runs in a fresh process, start-up
and imports included; the time is the least of the runs, the memory the greatest resident size.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from machine import describe
from trace_files import read_text, write

HERE = Path(__file__).resolve().parent
TRACES = HERE.parents[1] / "shared" / "traces"
LARGE_EVENTS, LARGE_BYTES = 5_000_000, 1_000_000_000
REQUIREMENTS = ["HolisticTraceAnalysis==0.5.0", "pandas<3"]
WAYS = {
    "unstall-trace": "`unstall trace`, whole answer",
    "unstall-load": "unstall, timeline only",
    "hta": "HTA 0.5, load and three breakdowns",
    "hta-load": "HTA 0.5, load only",
    "streamed": "igzip + msgspec, streamed, nothing kept",
    "gzip": "`gzip -dc`",
    "igzip": "igzip alone",
    "nothing": "Python that starts and ends",
}


@dataclass
class Cost:
    """Wall seconds, CPU seconds of all threads, and peak resident megabytes."""

    seconds: float
    cpu_seconds: float
    megabytes: float


@dataclass
class Section:
    """What was measured on the file of one size."""

    title: str
    costs: dict[str, Cost] = field(default_factory=dict)


def main() -> int:
    """Make the files, time every way, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, default=TRACES / "train_memcpy_a100.json.gz", help="what is repeated")
    parser.add_argument("--small", type=Path, default=TRACES / "dlrm_rank1_v100.json.gz", help="a trace of about 1 MB")
    parser.add_argument("--sizes", default="small,medium,large")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--hta", metavar="PYTHON", help="an interpreter that has HTA; without, one is set up")
    parser.add_argument("--no-hta", action="store_true", help="leave HTA out")
    parser.add_argument("--runs", type=int, default=3, help="of each way, but of one that takes over 20 s just one")
    parser.add_argument("--results", type=Path, help="figures of earlier runs: added to, or replaced by, these")
    parser.add_argument("--write", type=Path, help="write the table as Markdown")
    options = parser.parse_args()
    for path in (options.trace, options.small):
        if not path.exists():
            parser.error(f"{path} is not there: name traces of torch.profiler with --trace and --small")
    ways = [way for way in options.ways.split(",") if not (options.no_hta and way.startswith("hta"))]
    sections = load(options.results)
    with tempfile.TemporaryDirectory() as folder:
        python = options.hta or (set_up_hta(Path(folder)) if any(way.startswith("hta") for way in ways) else "")
        for size in options.sizes.split(","):
            path = Path(folder, f"{size}.json.gz")
            length, events = make_elsewhere(path, options.small if size == "small" else options.trace, size)
            packed = path.stat().st_size
            title = f"{size}: {length / 1e6:,.1f} MB of JSON, {events:,} events, {packed / 1e6:,.1f} MB gzipped"
            print(f"\n{title}", flush=True)
            section = sections.setdefault(size, Section(title))
            for way in ways:
                section.costs[way] = cost = measure(way, path, python, options.runs)
                figures = f"{cost.seconds:9.2f} s {cost.cpu_seconds:9.2f} s of CPU {cost.megabytes:9.0f} MB"
                print(f"  {WAYS[way]:44} {figures}", flush=True)
                if options.results:
                    options.results.write_bytes(msgspec.json.encode(sections))
            path.unlink()
    if options.write:
        options.write.write_text(markdown(sections), encoding="utf-8")
    return 0


def load(results: Path | None) -> dict[str, Section]:
    """What earlier runs measured."""
    if results is None or not results.exists():
        return {}
    return msgspec.json.decode(results.read_bytes(), type=dict[str, Section])


def make_elsewhere(path: Path, source: Path, size: str) -> tuple[int, int]:
    """Write the trace of a size; returns bytes of JSON and events.

    In a process of its own: the peak memory of a process that Linux starts from a large one counts the large one in.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(make, path, source, size).result()


def make(path: Path, source: Path, size: str) -> tuple[int, int]:
    """Repeat the source as often as the size needs."""
    text = read_text(source)
    enough = max(LARGE_EVENTS // text.count(b'"ph"'), LARGE_BYTES // len(text)) + 1
    return write(path, text, {"small": 1, "medium": 2, "large": enough}[size])


def set_up_hta(folder: Path) -> str:
    """An environment of its own, as HTA wants an older pandas."""
    venv.create(folder / "hta", with_pip=True)
    python = str(folder / "hta/bin/python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
    return python


def measure(way: str, path: Path, hta: str, runs: int) -> Cost:
    """The least time and the greatest memory of some runs."""
    costs: list[Cost] = []
    while len(costs) < runs and (not costs or costs[0].seconds < 20):
        costs.append(run(command(way, path, hta)))
    return Cost(
        min(cost.seconds for cost in costs),
        min(cost.cpu_seconds for cost in costs),
        max(cost.megabytes for cost in costs),
    )


def command(way: str, path: Path, hta: str) -> list[str]:
    """What to run."""
    if way == "gzip":
        return [shutil.which("gzip") or "gzip", "-dc", str(path)]
    python = hta if way.startswith("hta") else sys.executable
    return [python, "-I", str(HERE / "trace_readers.py"), way, str(path)]  # -I: this folder's names hide no module's


def run(argv: list[str]) -> Cost:
    """Run a command to its end; SystemExit with what it said if it fails."""
    with tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            sys.exit(f"{' '.join(argv)}\nended with {process.returncode}: {errors.read().decode()[-2000:]}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6)


def markdown(sections: dict[str, Section]) -> str:
    """The tables as a page. Speeds are compared by CPU seconds, which what else runs on the machine hardly changes."""
    lines = [
        "# How fast traces are read",
        "",
        f"`make trace-bench`, on {describe()}. A process each, start-up included. HTA is HolisticTraceAnalysis; it is",
        "compared by CPU time, which is fair to it: `unstall` uses two threads, and its time is shorter still.",
        "",
    ]
    for section in sections.values():
        lines += [f"## {section.title[0].upper()}{section.title[1:]}", ""]
        lines += ["| | time | CPU time | peak memory | against HTA |", "| --- | ---: | ---: | ---: | --- |"]
        lines += [
            row(WAYS[way], section.costs[way], section.costs.get("hta"), way) for way in WAYS if way in section.costs
        ]
        lines.append("")
    return "\n".join(lines)


def row(name: str, cost: Cost, hta: Cost | None, way: str) -> str:
    """A line of a table."""
    against = ""
    if hta and way.startswith("unstall"):
        faster, memory = hta.cpu_seconds / cost.cpu_seconds, cost.megabytes / hta.megabytes
        against = f"{faster:.1f}× as fast, {memory:.2f} of its memory"
    return f"| {name} | {cost.seconds:.2f} s | {cost.cpu_seconds:.2f} s | {cost.megabytes:,.0f} MB | {against} |"


if __name__ == "__main__":
    sys.exit(main())
