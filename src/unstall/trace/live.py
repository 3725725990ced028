"""The GPU windows of a run (child.gpu_window), read as any other trace, and joined with the run's own report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unstall.records.report import Finding, Report
from unstall.trace.timeline import TraceError

PATTERN = "gpu-*.json"
_UNSEEN = ("callback-bound", "environment-bound", "memory-growth")
"""What a few steps of a trace cannot show: the run's own findings of these stand beside the trace's."""


def join(made: Report, directory: Path, device_step_s: Sequence[float] = ()) -> Report:
    """The run's report with what its GPU windows say; the same report when there is none.

    The device's view has the verdict, for a host that runs ahead of its device sees the wrong phases. The run's own
    culprit is kept where both found the same pattern: stack samples name the user's line, a trace the operator.
    """
    paths = sorted(directory.glob(PATTERN))
    if not paths:
        return made
    try:
        traced = _report(paths)
    except TraceError as error:
        made.run.notes.append(f"the GPU window could not be read: {error}")
        return made
    if traced.trace is None:
        made.run.notes.append("the GPU window shows no work on the device")
        return made
    made.trace = traced.trace
    if device_step_s:
        made.trace.device_step_s = sum(device_step_s) / len(device_step_s)
    made.utilization.gpu = made.utilization.gpu or traced.utilization.gpu
    made.findings = _merged(made.findings, traced.findings)
    made.verdict = made.findings[0]
    made.run.notes += [note for note in traced.run.notes if note not in made.run.notes]
    return made


def _report(paths: Sequence[Path]) -> Report:
    from unstall.trace.ranks import Ranks
    from unstall.trace.readers import read
    from unstall.trace.report import report

    return report(Ranks.of([timeline for path in paths for timeline in read(path)]), [])


def _merged(ours: list[Finding], traced: list[Finding]) -> list[Finding]:
    """The trace's findings, with the run's culprits; before them what only the run sees, if it is worth more."""
    by_pattern = {finding.pattern: finding for finding in ours}
    for finding in traced:
        same = by_pattern.get(finding.pattern)
        if same is not None and same.culprit is not None:
            finding.culprit = same.culprit
            finding.evidence += [line for line in same.evidence if line not in finding.evidence][:1]
    unseen = [finding for finding in ours if finding.pattern in _UNSEEN]
    first = traced[0]
    before = [one for one in unseen if one.headroom > first.headroom or (one is ours[0] and first.pattern == "healthy")]
    return [*before, *traced, *(one for one in unseen if one not in before)]
