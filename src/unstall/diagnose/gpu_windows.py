"""The GPU windows of a run (child.gpu_window), read as any other trace: what they add to the run's own report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from unstall.records.trace import TraceFacts
    from unstall.trace.features import TraceFeatures

PATTERN = "gpu-*.json"


@dataclass(frozen=True)
class GpuWindow:
    """What a run's windows show of its device; all empty where nothing was recorded."""

    features: TraceFeatures | None = None
    figures: TraceFacts | None = None
    """Its part of the report."""
    gpu: list[float] | None = None
    """Utilisation of each device, 0..1."""
    notes: list[str] = field(default_factory=list)


def read(directory: Path, device_step_s: Sequence[float] = ()) -> GpuWindow | None:
    """The windows in a run's folder; None when there is none.

    ``device_step_s``: seconds of steps as CUDA events timed them.
    """
    paths = sorted(directory.glob(PATTERN))
    if not paths:
        return None
    from unstall.diagnose.trace_notes import notes
    from unstall.diagnose.trace_report import figures
    from unstall.trace.features import TraceFeatures
    from unstall.trace.ranks import Ranks
    from unstall.trace.readers import read as read_traces
    from unstall.trace.timeline import TraceError

    try:
        ranks = Ranks.of([timeline for path in paths for timeline in read_traces(path)])
        if not any(summary.devices for summary in ranks.summaries):
            return GpuWindow(notes=["the GPU window shows no work on the device"])
        features = TraceFeatures(ranks.with_device())
        facts = figures(features, [])
    except TraceError as error:
        return GpuWindow(notes=[f"the GPU window could not be read: {error}"])
    if device_step_s:
        facts = msgspec.structs.replace(facts, device_step_s=sum(device_step_s) / len(device_step_s))
    busy = [share for summary in features.ranks.summaries for share in summary.busy]
    return GpuWindow(features, facts, busy, notes(features))
