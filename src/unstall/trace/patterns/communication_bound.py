"""communication-bound: collectives run while nothing is computed."""

from __future__ import annotations

import numpy as np

from unstall.records.report import Finding
from unstall.text.units import factor, percent, seconds
from unstall.trace.look import Look
from unstall.trace.thresholds import COMMUNICATION_SHARE


def match(look: Look) -> Finding | None:
    """The finding, or None when communication is hidden behind computing."""
    shares, facts = look.shares, look.facts
    if shares["communication"] < COMMUNICATION_SHARE.value:
        return None
    headroom = look.gain("nccl=0")
    hidden = max(shares["communication_all"] - shares["communication"], 0.0)
    return Finding(
        pattern="communication-bound",
        cause=None,
        culprit=facts.blame.culprit(_longest_call(look), shares["communication"], look.where),
        headroom=headroom,
        headroom_known_by="predicted",
        confidence=look.confidence(shares["communication"]),
        evidence=[
            f"{percent(shares['communication'])} of a step, {seconds(shares['communication'] * look.step_s)}, are "
            f"collectives while nothing is computed; {percent(hidden)} are hidden behind computing",
            *_waiting(look),
            f"with twice the bandwidth {factor(look.gain('nccl=0.5x'))} faster, "
            f"overlapped with computing {factor(look.gain('nccl=overlapped'))}",
        ],
        advice=[
            "overlap: larger buckets (bucket_cap_mb), gradient_as_bucket_view, static_graph; prefetch with FSDP",
            "send less: accumulate gradients over steps (no_sync), compress them (bf16 hook)",
        ],
    )


def _longest_call(look: Look) -> int:
    facts = look.facts
    rows = facts.collective_rows
    if not len(rows):
        return -1
    return int(facts.timeline.launch[rows[np.argmax(facts.timeline.device.dur_ns[rows])]])


def _waiting(look: Look) -> list[str]:
    if look.ranks.matched is not None:
        return [f"{percent(look.ranks.wait_share)} of a rank's step is waiting for later ranks, not transfer"]
    if (look.facts.timeline.world_size or 0) > 1 and len(look.ranks) == 1:
        return ["one rank alone: transfer and waiting for later ranks cannot be told apart; give the other ranks too"]
    return []
