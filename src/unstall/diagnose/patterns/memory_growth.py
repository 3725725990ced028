"""memory-growth: resident or device memory grows with every step, so the run ends in an out-of-memory error."""

from __future__ import annotations

from unstall.diagnose import growth
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Features, Pattern, at, grows_by
from unstall.diagnose.thresholds import (
    GROWTH_BYTES,
    GROWTH_CONFIDENCE,
    GROWTH_EXPLAINED,
    GROWTH_POINTS,
    OUTRANKS_GROWTH,
    WORTH,
)
from unstall.records.report import Finding, NextStep
from unstall.records.run import Utilization
from unstall.statistics import slope
from unstall.text.units import bytes_, known

_ADVICE = {
    "graph": "keep the number, not the graph: loss.item() or loss.detach() before it is added or stored",
    "cache": "keep only what is needed: a bounded deque or cache, or copy out the few numbers that are used later",
}


class MemoryGrowth(Pattern):
    """The run will end for want of memory, whatever its speed."""

    name = "memory-growth"
    brief = "memory grows with every step"
    costs_time = False
    next_step = NextStep(label="the lines that allocate:", option="--memory")
    causes = ("graph", "cache")
    keeps_verdict = True
    advice = "keep only what is needed between steps, and numbers instead of tensors"
    by_hand = (
        ("graph", "detach() what is kept between steps"),
        (None, "limit what is kept between steps"),
    )
    by_hand_from = 1.0

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the slope of memory over the steps, and by what the program was seen to keep.

        Memory that the program has freed, and that its allocator cannot give back, is not kept by anybody. What has a
        capacity in the source ends growing there, and what was allocated whole when all of it has been touched.
        """
        memory, keepers = host.measurement.memory, host.keepers
        for series, what in ((memory.device_by_step, "device memory"), (memory.rss_by_step, "resident memory")):
            kept = growth.floors(series)
            if len(kept) < GROWTH_POINTS:
                continue
            rate, low, _ = slope(kept)
            grown = rate * (kept[-1][0] - kept[0][0])
            if low <= 0 or grown < GROWTH_BYTES:
                continue
            # Growth that looks like a warm-up's is believed when the program was seen to keep that much.
            endless = keepers.endless
            enough = GROWTH_EXPLAINED * rate
            explained = bool(endless and endless.culprit and endless.kept.bytes_per_step > enough)
            is_sure = slope(kept, GROWTH_CONFIDENCE)[1] > 0
            will_end = keepers.bounded_bytes_per_step > enough or (
                series is memory.rss_by_step
                and (growth.is_fragmentation(memory, rate) or growth.is_filling(memory, rate))
            )
            if explained or (is_sure and not will_end and growth.is_growing(series, min_bytes_per_step=1.0)):
                return self._grown(host, what, rate, grown)
        return None

    def _grown(self, host: HostFeatures, what: str, rate: float, grown: float) -> Finding:
        measured, endless = host.measurement, host.keepers.endless
        top, blamed = (endless.kept, endless.culprit) if endless else (None, None)
        cause = "graph" if top and top.graph_per_step > 0 else "cache"
        evidence = [f"{what} grows by {bytes_(rate)} a step, {bytes_(grown)} during the measured steps"]
        room = measured.memory.available - (measured.memory.rss_peak or 0)
        if what == "resident memory" and measured.memory.available and rate > 0:
            steps = room / rate
            evidence.append(f"at this rate memory is full in {steps:,.0f} steps ({steps * host.step_s / 3600:.2g} h)")
        if top:
            kept = f"{top.path} ({top.kind}) keeps growing"
            if cause == "graph":
                kept += f": its autograd graph by {top.graph_per_step:.3g} nodes a step"
            elif top.len_per_step:
                kept += f" by {top.len_per_step:.3g} entries a step"
            evidence.append(kept)
        if measured.slowing is not None:
            evidence.append(grows_by(measured.slowing))
        return self.finding(
            cause=cause,
            culprit=blamed,
            headroom=1.0,  # it costs memory; how much time it will cost later no run shows
            confidence="high" if top else "medium",
            evidence=evidence,
            advice=[_ADVICE[cause]],
        )

    def rank(self, finding: Finding, features: Features) -> float:
        """It ends the run, so it comes before any stall that costs less than a factor of two.

        Where nobody was seen to keep it, it may end by itself, as garbage in cycles and caches do: all that is worth
        fixing comes first.
        """
        is_kept = features.host is not None and features.host.keepers.endless is not None
        return OUTRANKS_GROWTH if is_kept else 1.001 * WORTH

    def condition(self, finding: Finding) -> str:
        """None: the step is faster once nothing is kept."""
        return ""

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """How much memory a step takes for good, and what keeps it."""
        amounts = (use.rss_growth_bytes_per_step, use.gpu_memory_growth_bytes_per_step)
        growing = [amount for amount in amounts if known(amount) and amount > 0]
        grows = f"memory grows by {bytes_(max(growing))} every step" if growing else "memory grows"
        return f"{grows}{at(finding.culprit, ', kept by ')}"


PATTERN = MemoryGrowth()
