"""Jobs of a thousand ranks put together and judged: who is found late, how long it takes, how much memory.

    make ranks-bench                      20 jobs of 128 nodes with 8 ranks each, an hour of steps of 0.2 s
    python bench/ranks.py --jobs 2 --nodes 16

The jobs are generated, because no machine here has a thousand ranks. Each has its own stragglers (none, a rank, a few,
or a whole node; 8 to 60 % of a step late), clocks that are hours apart and drift by up to 100 ppm, nodes that never
came, and ranks that died or were started again. The node of rank 0 is a recording, span by span, which goes through all
that a real one does; the other nodes are parts. Each job is judged in a fresh process, from that node's recording to
the report. Reading the other nodes' own recordings is their own work, and no part of it.

A rank is found if it is in the report's `late`; ranks on nodes that never came count neither way.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from gathercase import Job  # noqa: E402

from unstall.benchmark.gather import parts  # noqa: E402
from unstall.benchmark.gather.store import FolderStore  # noqa: E402
from unstall.benchmark.measure import measure  # noqa: E402
from unstall.diagnose.overview import RunContext  # noqa: E402
from unstall.diagnose.run_report import DiagnosedRun  # noqa: E402
from unstall.diagnose.summary import report  # noqa: E402
from unstall.records.observations import Observation  # noqa: E402
from unstall.runs.gather import Gathering  # noqa: E402

RANKS_PER_NODE, STEP_S = 8, 0.2
MOST_S, MOST_MB, LEAST_SHARE = 60.0, 1000, 0.95


@dataclass(frozen=True)
class Planted:
    """A job, and the nodes of it that never come."""

    job: Job
    missing: frozenset[int]

    @property
    def late(self) -> set[int]:
        """The late ranks that came."""
        return {rank for rank in self.job.late if rank // RANKS_PER_NODE not in self.missing}


def main() -> int:
    """Generate the jobs, judge each in a process of its own, and print the figures; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="seed of the first job")
    parser.add_argument("--nodes", type=int, default=128)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--judge", nargs=2, metavar=("SEED", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.judge:
        print(json.dumps(judge(plant(int(options.judge[0]), options), Path(options.judge[1]))))
        return 0
    rows = [one_job(seed, options) for seed in range(options.first, options.first + options.jobs)]
    return summary(rows, options)


def plant(seed: int, options: argparse.Namespace) -> Planted:
    """A job as this seed has it."""
    random = np.random.default_rng(seed)
    nodes, ranks = options.nodes, options.nodes * RANKS_PER_NODE
    kind = ("none", "rank", "ranks", "node")[seed % 4]
    node = int(random.integers(nodes))
    chosen = {
        "none": [],
        "rank": random.integers(ranks, size=1).tolist(),
        "ranks": random.choice(ranks, size=4, replace=False).tolist(),
        "node": range(node * RANKS_PER_NODE, (node + 1) * RANKS_PER_NODE),
    }[kind]
    steps = round(options.hours * 3600 / STEP_S)
    others = random.permutation(np.arange(1, nodes))
    died, restarted = (others[5] * RANKS_PER_NODE + 1, others[6] * RANKS_PER_NODE) if nodes > 7 else (1, 2)
    job = Job(
        nodes=nodes,
        ranks_per_node=RANKS_PER_NODE,
        steps=steps,
        late={int(rank): STEP_S * random.uniform(0.08, 0.6) for rank in chosen},
        offsets={i: (random.uniform(-50_000, 50_000), random.uniform(-1e-4, 1e-4)) for i in range(1, nodes)},
        ended={int(died): steps // 3},
        restarts={int(restarted): 1},
        seed=seed,
    )
    return Planted(job, frozenset(others[: int(random.integers(0, 4))].tolist()))


def one_job(seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Write the parts of all nodes but the first, and judge them in a fresh process."""
    planted = plant(seed, options)
    with tempfile.TemporaryDirectory() as folder:
        store = FolderStore(Path(folder))
        for node in set(range(1, options.nodes)) - planted.missing:
            parts.publish(store, planted.job.part(node), planted.job.stacks(node), f"{node:08x}")
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        sizes = ["--nodes", str(options.nodes), "--hours", str(options.hours)]
        command = [sys.executable, __file__, *sizes, "--judge", str(seed), folder]
        row: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    came = (options.nodes - 1 - len(planted.missing)) * RANKS_PER_NODE
    row |= {"planted": sorted(planted.late), "bytes_per_rank_and_step": size / came / planted.job.steps}
    cost = f"{row['seconds']:5.1f} s  {row['mb']:5.0f} MB"
    print(f"{seed:3}  {cost}  late {row['planted']}  found {row['late']}", flush=True)
    return row


def judge(planted: Planted, folder: Path) -> dict[str, Any]:
    """From the first node's recording to the report, with what that took."""
    job = planted.job
    recordings = [job.recording(number) for number in range(RANKS_PER_NODE)]
    before_mb, began, cpu_began = peak_mb(), time.perf_counter(), time.process_time()
    observation = Observation(999.0, 1000.0 + job.steps * job.step_s + 1, samples=job.stacks(0))
    measured = measure(recordings, observation)
    assert measured is not None
    run = RunContext("id", ["train.py"], "2026-01-01T00:00:00Z", 0, {}, observation)
    diagnosis = DiagnosedRun(run, report(run, measured.measurement), measured, recordings)
    found = Gathering(FolderStore(folder), None, 0.1, lambda line: None).gather(diagnosis).diagnosis.report
    found.to_json()
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    communication = found.communication
    assert communication is not None
    clocks = [
        abs(node.clock_offset_s - middle(job, node.ranks[0] // RANKS_PER_NODE))
        for node in communication.nodes
        if node.clock_offset_s is not None
    ]
    culprit = found.verdict.culprit
    return {
        "seconds": seconds,
        "cpu_s": cpu_s,
        "mb": peak_mb(),
        "mb_before": before_mb,
        "late": sorted(communication.late),
        "culprit": culprit.function if found.verdict.pattern == "straggler" and culprit else None,
        "unseen": len(communication.unseen) == len(planted.missing) * RANKS_PER_NODE,
        "ended_early": any("ended early" in note for note in found.run.notes),
        "clock_error_s": max(clocks),
    }


def middle(job: Job, node: int) -> float:
    """How far a node's clock is ahead in the middle of the exchanges that parts have."""
    offset, drift = job.offsets.get(node, (0.0, 0.0))
    (exchanges,) = job.rank(0).exchanges
    ends = job.ends[:: exchanges.stride]
    return float(offset + drift * (ends[-1] - ends[0]) / 2)


def peak_mb() -> float:
    """Most memory that this process had, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def summary(rows: list[dict[str, Any]], options: argparse.Namespace) -> int:
    """Print the table; 1 if a goal is missed."""
    right = sum(len(set(row["late"]) & set(row["planted"])) for row in rows)
    found, planted = (sum(len(row[name]) for row in rows) for name in ("late", "planted"))
    with_late = [row for row in rows if row["planted"]]
    precision, recall = right / max(found, 1), right / max(planted, 1)
    culprits = sum(row["culprit"] == "fetch_slowly" for row in with_late) / max(len(with_late), 1)
    named = sum(row["unseen"] and row["ended_early"] for row in rows) / len(rows)
    seconds, memory = max(row["seconds"] for row in rows), max(row["mb"] for row in rows)
    lines = [
        ("merged and judged, longest", f"{seconds:.1f} s", f"≤ {MOST_S:.0f} s"),
        ("of it on a core, longest", f"{max(row['cpu_s'] for row in rows):.1f} s", ""),
        ("memory, most", f"{memory:.0f} MB", f"≤ {MOST_MB} MB"),
        ("late ranks, precision", f"{precision:.1%}", f"≥ {LEAST_SHARE:.0%}"),
        ("late ranks, recall", f"{recall:.1%}", f"≥ {LEAST_SHARE:.0%}"),
        ("jobs whose culprit is the planted function", f"{culprits:.1%}", f"≥ {LEAST_SHARE:.0%}"),
        ("jobs whose missing and dead ranks are named", f"{named:.1%}", ""),
        ("clocks, largest error", f"{max(row['clock_error_s'] for row in rows) * 1e3:.2f} ms", "≤ 1 ms"),
        ("bytes left per rank and step", f"{max(row['bytes_per_rank_and_step'] for row in rows):.2f}", ""),
    ]
    ranks = options.nodes * RANKS_PER_NODE
    print(f"\n{len(rows)} jobs of {ranks:,} ranks, {options.hours:g} h\n")
    print("| what | measured | goal |\n| --- | --- | --- |")
    print("\n".join(f"| {name} | {value} | {goal} |" for name, value, goal in lines))
    met = seconds <= MOST_S and memory <= MOST_MB and min(precision, recall, culprits) >= LEAST_SHARE
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
