"""communication-bound: ranks wait for collectives that nothing hides."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unstall.child.seams import autograd, collectives, optimizer
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Pattern, UsualRemedy, at, of_step, part
from unstall.diagnose.ranks import exposed_s, spread, unseen
from unstall.diagnose.thresholds import COMMUNICATION_SHARE, DDP_BUCKET_BYTES, MOST, SEEN, VERY_UNEVEN
from unstall.records.measurements import GradientExchange, Measurement, RankMeasurement
from unstall.records.report import Culprit, Finding
from unstall.records.run import Utilization
from unstall.records.vocabulary import COMM
from unstall.text.units import bytes_, factor, number, percent, seconds
from unstall.threshold import Range
from unstall.trace.features import TraceFeatures


class CommunicationBound(Pattern):
    """The network between the ranks sets the pace."""

    name = "communication-bound"
    brief = "collectives between ranks that do not overlap with computation"
    doing = ((COMM.name, "waits in collectives"),)
    device_uses = ("communication",)
    causes = ("bucketing", "bandwidth", "unseen-rank")
    phases = (COMM.name,)
    advice = "fewer, larger collectives, or overlap them with the computation"
    by_hand = (
        (
            None,
            "gradient_as_bucket_view=True, larger buckets (bucket_cap_mb), and no_sync() while gradients accumulate",
        ),
    )
    calibration = ((None, None, Range(0.6, 1.5, 3.5, "one program: 1.3 to 2.9")),)
    usual_remedies = ((None, UsualRemedy("fewer, overlapped bytes", Range(0.0, 0.4, 0.9, "gradients still pass"))),)

    def on_host(self, host: HostFeatures) -> Finding | None:
        """What all ranks wait is communication; what only the fast ones wait is a straggler."""
        measured = host.measurement
        if not measured.has_peers:
            return None
        waited = min(exposed_s(rank) for rank in measured.ranks)
        headroom = host.headroom_without(waited)
        if headroom < SEEN or spread(measured.ranks) > VERY_UNEVEN * max(exposed_s(rank) for rank in measured.ranks):
            return None
        called = host.sites(collectives.COLLECTIVE)
        calls = measured.phase(COMM.name)  # as timed, without what backward is blocked for
        in_calls = calls is not None and calls.mean_s > MOST * waited
        seams = (collectives.COLLECTIVE,) if in_calls and called else (autograd.BACKWARD, optimizer.STEP)
        share = min(1.0, waited / host.step_s)
        culprit = host.caller(*seams, share=share)
        if measured.unseen_ranks:
            return self._waiting_for_unseen(measured, waited, culprit, share, headroom)
        largest, exchanged = _exchanged(measured, in_calls)
        inside = None if in_calls else _main_rank(measured).exchange
        return self.finding(
            cause="bandwidth" if largest > DDP_BUCKET_BYTES else "bucketing",
            culprit=culprit,
            share=share,
            headroom=headroom,
            evidence=[
                f"every rank waits {seconds(waited)} a step, {percent(share)}, for collectives",
                exchanged,
                *([_hidden(inside)] if inside is not None else []),
            ],
            advice=[
                *(_settings(inside) if inside is not None else ()),
                "exchange less often: accumulate gradients over several batches under no_sync()",
                "or exchange less: compress gradients to bf16 (DDP communication hook), larger batches per rank",
            ],
        )

    def _waiting_for_unseen(
        self, measured: Measurement, waited: float, culprit: Culprit | None, share: float, headroom: float
    ) -> Finding:
        """All ranks of this run wait, and others of the same world run elsewhere."""
        return self.finding(
            summary=f"{percent(share)} of each step waits in collectives, for the network or for a rank not seen here",
            cause="unseen-rank",
            culprit=culprit,
            share=share,
            headroom=headroom,
            confidence="low",
            evidence=[
                f"every rank that was seen waits {seconds(waited)} a step, {percent(share)}, for collectives",
                f"{unseen(measured)} not seen: a rank there may be late, or the network slow",
            ],
            advice=["run unstall on the other nodes too: the rank that waits least is the one that is late"],
        )

    def on_device(self, device: TraceFeatures) -> Finding | None:
        """Collectives that run while nothing is computed."""
        shares = device.shares
        share = shares["communication"]
        if share < COMMUNICATION_SHARE:
            return None
        hidden = max(shares["communication_all"] - share, 0.0)
        return self.finding(
            summary=f"{percent(share)} of a step is spent in collectives that do not overlap with computation",
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


def _main_rank(measured: Measurement) -> RankMeasurement:
    return next((rank for rank in measured.ranks if rank.pid == measured.main_pid), measured.ranks[0])


def _hidden(exchange: GradientExchange) -> str:
    """How well DDP overlaps, as torch logs it."""
    hidden = percent(exchange.hidden_s / exchange.took_s) if exchange.took_s else "none"
    return (
        f"DDP's exchange takes {seconds(exchange.took_s)} of a step, {hidden} of it hidden behind "
        f"{seconds(exchange.backward_s)} of backward (torch's own timing)"
    )


def _settings(exchange: GradientExchange) -> Iterator[str]:
    """Arguments of DistributedDataParallel that this program would be quicker with, whatever it exchanges."""
    if exchange.looks_for_unused:
        yield "leave out find_unused_parameters=True: none was unused, and DDP goes through the graph in every step"
    if exchange.copies_buckets:
        yield "set gradient_as_bucket_view=True: gradients are copied into buckets and back"


def _exchanged(measured: Measurement, in_calls: bool) -> tuple[float, str]:
    """Bytes that ranks exchange at once, and what they exchange in a step, as a line of evidence."""
    main = _main_rank(measured)
    buckets = main.exchange.buckets if main.exchange is not None and not in_calls else ()
    if buckets:
        several = f"{len(buckets)} buckets, the largest {bytes_(max(buckets))}" if len(buckets) > 1 else "one bucket"
        return float(max(buckets)), f"DDP exchanges {bytes_(sum(buckets))} a step in {several}"
    calls, moved = sum(group.calls for group in main.groups), sum(group.bytes for group in main.groups)
    if in_calls and calls and moved:
        return moved / calls, f"{number(calls)} collectives move {bytes_(moved)} a step"
    parameters = measured.model.parameters
    size = parameters * 4
    return size, f"{parameters / 1e6:.3g} M parameters are {size / 1e6:.3g} MB to exchange a step"


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
        return ["one rank alone: transfer cannot be distinguished from waiting; give the other ranks' files too"]
    return []


PATTERN = CommunicationBound()
