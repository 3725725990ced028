"""straggler: one rank comes late to the collectives, and all others wait for it."""

from __future__ import annotations

from unstall.records.report import Finding
from unstall.text.units import percent
from unstall.trace.facts import Facts
from unstall.trace.look import Look
from unstall.trace.thresholds import LATE_RANK_SHARE

_WHY = {
    "idle_loader": ("waits for its next batch", "transform"),
    "idle_sync": ("waits for its device", "item"),
    "idle_submitting": ("submits its work late", "small-ops"),
    "idle_host": ("is busy on the host", "python"),
    "compute": ("computes longer", "kernel"),
    "copies": ("copies", "pageable"),
}


def match(look: Look) -> Finding | None:
    """The finding, or None when no single rank is late; ranks need collectives in common."""
    late = look.ranks.late_share
    if late is None or late.max() < LATE_RANK_SHARE.value:
        return None
    index = int(late.argmax())
    facts = look.ranks.facts(index)
    name = look.ranks.name(index)
    reason = _reason(look, facts)
    words, cause = _WHY[reason]
    gaps = facts.after_gaps(reason.removeprefix("idle_"))[0] if reason.startswith("idle_") else facts.kernels.rows[:1]
    row = int(facts.timeline.launch[gaps[0]]) if len(gaps) else -1
    share = float(late.max())
    return Finding(
        pattern="straggler",
        cause=cause,
        culprit=facts.blame.culprit(row, facts.shares[reason], f"rank {name}"),
        headroom=1 / max(1 - share, 0.05),
        headroom_known_by="estimated",
        confidence="high" if share >= 2 * LATE_RANK_SHARE.value else "medium",
        evidence=[
            f"the other ranks wait {percent(share)} of a step for rank {name} at collectives",
            f"rank {name} {words}: {percent(facts.shares[reason])} of its step against "
            f"{percent(look.shares[reason])} over all ranks",
        ],
        advice=[f"look at rank {name} alone: its data, its host's load, its device's clocks"],
    )


def _reason(look: Look, facts: Facts) -> str:
    """What this rank does more of than the others."""
    return max(_WHY, key=lambda name: facts.shares[name] - look.shares[name])
