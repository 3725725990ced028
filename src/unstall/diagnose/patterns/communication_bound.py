"""communication-bound: ranks wait for collectives that nothing hides."""

from __future__ import annotations

import numpy as np

from unstall.child.seams import autograd, collectives, optimizer
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Pattern, at, of_step, part
from unstall.diagnose.ranks import exposed_s, spread
from unstall.diagnose.thresholds import COMMUNICATION_SHARE, DDP_BUCKET_BYTES, MOST, SEEN
from unstall.records.report import Finding, Utilization
from unstall.text.units import factor, percent, seconds
from unstall.trace.features import TraceFeatures

_UNEVEN = 0.6  # of the longest wait: more difference between ranks is a straggler's doing


class CommunicationBound(Pattern):
    """The network between the ranks sets the pace."""

    name = "communication-bound"
    brief = "collectives between ranks that nothing hides"
    causes = ("bucketing", "bandwidth")
    phases = ("comm",)
    advice = "fewer, larger collectives, or overlap them with the computation"
    by_hand = (
        (
            None,
            "gradient_as_bucket_view=True, larger buckets (bucket_cap_mb), and no_sync() while gradients accumulate",
        ),
    )

    def on_host(self, host: HostFeatures) -> Finding | None:
        """What all ranks wait is communication; what only the fast ones wait is a straggler."""
        measured = host.measurement
        if len(measured.ranks) < 2:
            return None
        waited = min(exposed_s(rank) for rank in measured.ranks)
        headroom = host.headroom_without(waited)
        if headroom < SEEN or spread(measured.ranks) > _UNEVEN * max(exposed_s(rank) for rank in measured.ranks):
            return None
        called = host.sites(collectives.COLLECTIVE)
        calls = measured.phase("comm")  # as timed, without what backward is blocked for
        in_calls = calls is not None and calls.mean_s > MOST * waited
        seams = (collectives.COLLECTIVE,) if in_calls and called else (autograd.BACKWARD, optimizer.STEP)
        size = measured.model.parameters * 4
        share = min(1.0, waited / host.step_s)
        return self.finding(
            cause="bandwidth" if size > DDP_BUCKET_BYTES else "bucketing",
            culprit=host.caller(*seams, share=share),
            share=share,
            headroom=headroom,
            evidence=[
                f"every rank waits {seconds(waited)} a step, {percent(share)}, for collectives",
                f"{measured.model.parameters / 1e6:.3g} M parameters are {size / 1e6:.3g} MB to exchange a step",
            ],
            advice=[
                "exchange less often: accumulate gradients over several batches under no_sync()",
                "or exchange less: compress gradients to bf16 (DDP communication hook), larger batches per rank",
            ],
        )

    def on_device(self, device: TraceFeatures) -> Finding | None:
        """Collectives that run while nothing is computed."""
        shares = device.shares
        share = shares["communication"]
        if share < COMMUNICATION_SHARE:
            return None
        hidden = max(shares["communication_all"] - share, 0.0)
        return self.finding(
            summary=f"{percent(share)} of a step are collectives that no computing hides",
            culprit=device.metrics.blame.culprit(_longest_call(device), share, device.where),
            share=share,
            headroom=device.gain("nccl=0"),
            headroom_known_by="predicted",
            confidence=device.confidence(share),
            evidence=[
                f"{of_step(share, share * device.step_s)}, are "
                f"collectives while nothing is computed; {percent(hidden)} are hidden behind computing",
                *_waiting(device),
                f"with twice the bandwidth {factor(device.gain('nccl=0.5x'))} faster, "
                f"overlapped with computing {factor(device.gain('nccl=overlapped'))}",
            ],
            advice=[
                "overlap: larger buckets (bucket_cap_mb), gradient_as_bucket_view, static_graph; prefetch with FSDP",
                "send less: accumulate gradients over steps (no_sync), compress them (bf16 hook)",
            ],
        )

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the line that communicates."""
        return f"{part(finding)} goes into communication between the ranks{at(finding.culprit)}"


def _longest_call(device: TraceFeatures) -> int:
    rows = device.metrics.collective_rows
    if not len(rows):
        return -1
    timeline = device.metrics.timeline
    return int(timeline.launch[rows[np.argmax(timeline.device.dur_ns[rows])]])


def _waiting(device: TraceFeatures) -> list[str]:
    if device.ranks.matched is not None:
        return [f"{percent(device.ranks.wait_share)} of a rank's step is waiting for later ranks, not transfer"]
    if (device.metrics.timeline.world_size or 0) > 1 and len(device.ranks) == 1:
        return ["one rank alone: transfer and waiting for later ranks cannot be told apart; give the other ranks too"]
    return []


PATTERN = CommunicationBound()
