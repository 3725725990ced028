"""Two traces of the same program side by side: what changed, by use of the device, by operator, by kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unstall.diagnose.findings import findings
from unstall.diagnose.patterns.base import Features
from unstall.records.run import Utilization
from unstall.records.trace import TraceChanged, TraceComparison
from unstall.trace.features import TraceFeatures
from unstall.trace.kernels import Total
from unstall.trace.metrics import TimelineMetrics
from unstall.trace.ranks import Ranks
from unstall.trace.timeline import Timeline

USES = (
    "compute",
    "communication",
    "copies",
    "idle_loader",
    "idle_sync",
    "idle_queued",
    "idle_submitting",
    "idle_host",
    "idle_cold",
)
"""The disjoint uses of the device's time, see ``breakdown.Breakdown``."""

_MOST = 20


def compare(before: Timeline, after: Timeline) -> TraceComparison:
    """What changed from one trace to the other, in seconds a step, the largest change first.

    The steps are compared by their medians, as one odd step weighs much in a short trace; the rest by means.
    """
    ranks = [Ranks.of([before]), Ranks.of([after])]
    a, b = (rank.metrics(0) for rank in ranks)
    return TraceComparison(
        files=[before.path, after.path],
        step_s=[_median_s(a), _median_s(b)],
        ratio=_median_s(a) / _median_s(b),
        marked_steps=a.windows.marked and b.windows.marked,
        verdicts=[_verdict(rank) for rank in ranks],
        uses=[
            TraceChanged(name=name, before_s=a.per_step(a.shares[name]), after_s=b.per_step(b.shares[name]))
            for name in USES
        ],
        operators=_changes(a, b, lambda metrics: metrics.kernels.by_operator()),
        kernels=_changes(a, b, lambda metrics: metrics.kernels.by_kernel()),
    )


def _median_s(metrics: TimelineMetrics) -> float:
    return float(np.median(metrics.windows.dur_ns)) / 1e9


def _verdict(ranks: Ranks) -> str:
    if not ranks.summaries[0].devices:
        return "no GPU activity"
    return findings(Features(device=TraceFeatures(ranks)), Utilization())[0].pattern


def _changes(
    a: TimelineMetrics, b: TimelineMetrics, totals: Callable[[TimelineMetrics], list[Total]]
) -> list[TraceChanged]:
    before, after = _per_step(a, totals(a)), _per_step(b, totals(b))
    changed = []
    for name in {**before, **after}:
        (seconds_a, count_a), (seconds_b, count_b) = before.get(name, (0.0, 0.0)), after.get(name, (0.0, 0.0))
        changed.append(
            TraceChanged(name=name, before_s=seconds_a, after_s=seconds_b, before_count=count_a, after_count=count_b)
        )
    return sorted(changed, key=lambda change: -abs(change.after_s - change.before_s))[:_MOST]


def _per_step(metrics: TimelineMetrics, totals: list[Total]) -> dict[str, tuple[float, float]]:
    """Seconds and calls a step by name; different events may have the same tidied name."""
    steps = len(metrics.windows)
    result: dict[str, tuple[float, float]] = {}
    for total in totals:
        seconds, count = result.get(total.name, (0.0, 0.0))
        result[total.name] = (seconds + total.ns / steps / 1e9, count + total.count / steps)
    return result
