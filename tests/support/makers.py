"""Reports, entries and archives as real runs give them, with the figures that a test cares about."""

import numpy as np

from unstall.records import report as r
from unstall.records.archive import Archive, StepSeries
from unstall.records.comparison import Entry
from unstall.records.run import RunInfo, StepTime, Throughput, Utilization


def report(steps_per_s=10.0, *, run_id="20260102-030405-abcdef", pattern="input-bound", headroom=2.0, **more):
    environment = {"python": "3.11.7", "cpu": "EPYC", "cpu_count": 2.0, "memory_bytes": 8_000_000_000, "gpus": []}
    verdict = r.Finding(
        pattern=pattern,
        headroom=headroom,
        headroom_known_by=more.pop("known_by", "estimated"),
        confidence=more.pop("confidence", "high"),
        evidence=[],
        advice=["make it cheaper"],
        culprit=more.pop("culprit", r.Culprit(function="decode", file="/w/train.py", line=7, share=0.5)),
    )
    step = 1 / steps_per_s if steps_per_s else 0.0
    return r.Report(
        kind=more.pop("kind", "run"),
        run=RunInfo(
            id=run_id,
            command=more.pop("command", ["train.py"]),
            started="2026-01-02T03:04:05Z",
            duration_s=3600.0,
            steps=more.pop("steps", 100),
            exit_code=0,
            environment={**environment, **more.pop("environment", {})},
        ),
        throughput=Throughput(steps_per_s=steps_per_s, step_s=StepTime(mean=step, p50=step, p95=2 * step)),
        utilization=more.pop("utilization", Utilization(other_processes_cores=0.0)),
        phases=[
            r.PhaseTime(name="data_wait", share=0.6, mean_s=0.6 * step),
            r.PhaseTime(name="forward", share=0.4, mean_s=0.4 * step),
        ],
        verdict=verdict,
        findings=[verdict],
        **more,
    )


def entry(run_id="a", steps_per_s=10.0, **more):
    values = {
        "id": run_id,
        "kind": "run",
        "project": "here",
        "started": "2026-01-02T03:04:05Z",
        "host": "box",
        "directory": "/w/.unstall/runs/a",
        "command": ["train.py"],
        "revision": "c0ffee00" * 5,
        "duration_s": 3600.0,
        "steps": 100,
        "steps_per_s": steps_per_s,
        "pattern": "input-bound",
        "gap": 0.5,
        **more,
    }
    return Entry(**values)


def kept(durations, *, first_share=0.6, **more):
    """An archive of steps of these seconds, all of them measured unless told."""
    durations = np.asarray(durations, float)
    measured = more.pop("measured", np.ones(len(durations), bool))
    made = report(1 / durations[measured].mean(), **more)
    steps = StepSeries(
        boundaries_f8=np.concatenate([[100.0], 100.0 + durations.cumsum()]).astype("<f8").tobytes(),
        phases_f4={
            "data_wait": (first_share * durations).astype("<f4").tobytes(),
            "forward": ((1 - first_share) * durations).astype("<f4").tobytes(),
        },
        measured_u1=measured.astype("u1").tobytes(),
        gap_u1=np.zeros(len(durations), "u1").tobytes(),
    )
    return Archive(report=made, steps=steps)
