"""A report for the verbs to show."""

from __future__ import annotations

import pytest

from unstall.records import report as r
from unstall.records.run import RunInfo, Throughput, Utilization


@pytest.fixture
def healthy_report() -> r.Report:
    verdict = r.Finding(
        pattern="healthy", headroom=1.0, headroom_known_by="estimated", confidence="high", evidence=[], advice=[]
    )
    run = RunInfo(
        id="../odd id", command=["a.py"], started="2026-01-01T00:00:00Z", duration_s=1.0, steps=9, exit_code=0,
        environment={},
    )  # fmt: skip
    return r.Report(
        kind="run",
        run=run,
        throughput=Throughput(steps_per_s=3.0),
        utilization=Utilization(),
        phases=[],
        verdict=verdict,
        findings=[verdict],
    )
