"""memory-growth: resident or device memory grows with every step, so the run ends in an out-of-memory error."""

from __future__ import annotations

from typing import Any

from unstall.child import retention
from unstall.diagnose import growth, source
from unstall.diagnose.features import Features
from unstall.records.report import Culprit, Finding
from unstall.text.units import bytes_

_EXPLAINED = 0.3
_FEWEST_POINTS = 8
_LEAST_TOTAL = 24e6
"""Bytes a run must have grown by: less is an allocator settling."""


def match(features: Features) -> Finding | None:
    """The finding, or None when the numbers do not show the pattern."""
    memory = features.measurement.memory
    top, blamed = _keeper(features)
    for series, what in ((memory.device_by_step, "device memory"), (memory.rss_by_step, "resident memory")):
        if len(series) < _FEWEST_POINTS:
            continue
        rate, low, _ = growth.slope(series)
        grown = rate * (series[-1][0] - series[0][0])
        if low <= 0 or grown < _LEAST_TOTAL:
            continue
        # Growth that looks like a warm-up's is believed when the program was seen to keep that much.
        kept = bool(top and blamed and top["bytes_per_step"] > _EXPLAINED * rate)
        if kept or growth.is_growing(series, min_bytes_per_step=1.0):
            return _finding(features, what, rate, grown, top, blamed)
    return None


def _finding(
    features: Features, what: str, rate: float, grown: float, top: dict[str, Any] | None, blamed: Culprit | None
) -> Finding:
    measured = features.measurement
    cause = "graph" if top and top.get("graph_per_step", 0) > 0 else "cache"
    evidence = [f"{what} grows by {bytes_(rate)} a step, {bytes_(grown)} during the measured steps"]
    room = measured.memory.available - (measured.memory.rss_peak or 0)
    if what == "resident memory" and measured.memory.available and rate > 0:
        steps = room / rate
        evidence.append(f"at this rate memory is full in {steps:,.0f} steps ({steps * features.step_s / 3600:.2g} h)")
    if top:
        kept = f"{top['path']} ({top['kind']}) keeps growing"
        if cause == "graph":
            kept += f": its autograd graph by {top['graph_per_step']:.3g} nodes a step"
        elif top.get("len_per_step"):
            kept += f" by {top['len_per_step']:.3g} entries a step"
        evidence.append(kept)
    return Finding(
        pattern="memory-growth",
        cause=cause,
        culprit=blamed,
        headroom=max(1.0, 1.0 + features.measurement.trend) if features.measurement.trend > 0.1 else 1.0,
        headroom_known_by="estimated",
        confidence="high" if top else "medium",
        evidence=evidence,
        advice=[
            "keep the number, not the graph: loss.item() or loss.detach() before it is added or stored"
            if cause == "graph"
            else "keep only what is needed: a bounded deque or cache, or copy out the few numbers that are used later"
        ],
    )


def _keeper(features: Features) -> tuple[dict[str, Any] | None, Culprit | None]:
    """What keeps growing in the program, by its own looks at itself, and the line that makes it grow.

    What is computed from a growing thing grows too; the first that a line of the user's makes grow is the keeper.
    """
    probes = features.measurement.memory.probes
    entries = retention.trend(probes) if len(probes) >= 2 else []
    for entry in entries:
        if entry.get("wrapped"):
            file, function, line = entry["wrapped"]
            code = source.code_at(file, line)
            return entry, Culprit(function=function, file=file, line=line, share=0.0, code=code)
        located = growth.locate(entry["path"], entry["file"], entry["function"])
        if located is None and probes:
            loop = probes[-1][1].get("loop", {})
            located = growth.locate(entry["path"], loop.get("file", ""), loop.get("function", ""))
        if located is not None:
            found = Culprit(
                function=located.function,
                file=located.file,
                line=located.line,
                share=0.0,
                code=located.code,
            )
            return entry, found
    return (entries[0] if entries else None), None
