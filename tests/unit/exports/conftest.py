"""A report and a run to export."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unstall.records import report as r
from unstall.records.archive import Archive, StepSeries
from unstall.records.run import RunInfo, StepTime, Throughput, Utilization
from unstall.records.speedup import ExpectedGain, Speedup

_HOSTILE = '<script>"\\\n\x1b[31m{x="1"} 5'


@pytest.fixture
def report():
    verdict = r.Finding(
        pattern="input-bound",
        headroom=2.5,
        headroom_known_by="measured",
        confidence="high",
        evidence=[],
        advice=[],
        culprit=r.Culprit(function=_HOSTILE, file="/w/train.py", line=7, share=0.5),
        ceiling=Speedup(value=2.5, low=2.25, high=4.0, confidence="medium", known_by="measured"),
        expected_gain=ExpectedGain(
            remedy="a cheaper transform", value=1.5, low=1.25, high=4.0, confidence="low", known_by="estimated"
        ),
    )
    return r.Report(
        kind="run",
        run=RunInfo(
            id="20260102-030405-abcdef",
            command=["train.py", _HOSTILE],
            started="2026-01-02T03:04:05Z",
            duration_s=60.0,
            steps=100,
            exit_code=0,
            environment={"python": "3.11.7", "git_revision": "c0ffee"},
        ),
        throughput=Throughput(steps_per_s=10.0, mfu=math.nan, step_s=StepTime(mean=0.1, p50=0.09, p95=0.2)),
        utilization=Utilization(cpu=0.5, gpu=[0.9, 0.1]),
        phases=[
            r.PhaseTime(name="data_wait", share=0.6, mean_s=0.06),
            r.PhaseTime(name="forward", share=0.4, mean_s=0.04),
        ],
        verdict=verdict,
        findings=[verdict],
    )


@pytest.fixture
def archive(report):
    durations = np.array([0.5, 0.25, 0.25])
    steps = StepSeries(
        boundaries_f8=np.concatenate([[102.0], 102.0 + durations.cumsum()]).tobytes(),
        phases_f4={"forward": durations.astype("<f4").tobytes()},
        measured_u1=b"\0\1\1",
        gap_u1=b"\1\0\0",
        first=7,
    )
    return Archive(report=report, steps=steps, began=100.0)
