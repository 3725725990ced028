"""Small real records of one program, for tests: each takes what a test is about, and fills in the rest."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from unstall.optimize.context import RemedyContext
from unstall.optimize.diagnosis import Diagnosis
from unstall.optimize.observed import RuntimeFacts
from unstall.optimize.program import Program
from unstall.optimize.source.files import Sources
from unstall.optimize.source.module import SourceModule, parsed
from unstall.optimize.trial_runner import TrialRun
from unstall.records.measurements import Measurement
from unstall.records.report import Finding, PhaseTime, Report
from unstall.records.run import RunInfo, StepTime, Throughput, Utilization

STEP_S = 0.1


def make_finding(pattern="healthy", **given) -> Finding:
    base = {"headroom": 1.0, "headroom_known_by": "estimated", "confidence": "high", "evidence": [], "advice": []}
    return Finding(pattern=pattern, **{**base, **given})


def make_phases(**shares) -> list[PhaseTime]:
    return [PhaseTime(name=name, share=share, mean_s=share * STEP_S) for name, share in shares.items()]


def make_report(*, findings=(), hotspots=(), phases=None) -> Report:
    found = list(findings) or [make_finding()]
    return Report(
        kind="run",
        run=RunInfo(id="1", command=["train.py"], started="", duration_s=10.0, steps=100, exit_code=0, environment={}),
        throughput=Throughput(steps_per_s=1 / STEP_S),
        utilization=Utilization(),
        phases=make_phases(**(phases or {})),
        verdict=found[0],
        findings=found,
        hotspots=list(hotspots),
    )


def make_measurement(*, phases=None, **given) -> Measurement:
    base = Measurement(
        kind="optimizer", steps=100, warmup=8, total_steps=108, step=StepTime(STEP_S, STEP_S, STEP_S),
        phases=make_phases(**(phases or {})), cores=2.0, main_pid=1,
    )  # fmt: skip
    return replace(base, **given)


def make_context(
    root=Path("/program"), *, script=None, report=None, measurement=None, phases=None, sources=None, **given
) -> RemedyContext:
    return RemedyContext(
        program=Program(("train.py",), ("python", "train.py"), script, Path(root)),
        report=report or make_report(phases=phases),
        measurement=measurement or make_measurement(phases=phases),
        sources=sources or Sources(),
        runtime=given.pop("runtime", RuntimeFacts()),
        cores=given.pop("cores", 2),
        **given,
    )


def make_diagnosis(*, step_s=STEP_S, **given) -> Diagnosis:
    measurement = make_measurement(step=StepTime(step_s, step_s, step_s))
    return Diagnosis(make_context(measurement=measurement, **given), "optimizer")


def make_run(folder=Path("/"), *, status=0, seconds=1.0, timed_out=False, output="") -> TrialRun:
    return TrialRun(folder, status, seconds, timed_out, output)


def make_module(text: str) -> SourceModule:
    return parsed(text.encode())
