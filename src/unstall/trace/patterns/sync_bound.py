"""sync-bound: the host waits for the device, which then has nothing to do, again and again.

Waiting alone is no harm: with a full queue, or at the end, the host has nothing better to do. It counts where the
device is idle because of it.
"""

from __future__ import annotations

import re

from unstall.records.report import Finding
from unstall.text.units import percent, seconds
from unstall.trace.look import Look
from unstall.trace.phrases import counted, ns
from unstall.trace.thresholds import IDLE_SYNC_SHARE, SEEN_GAIN, TINY_COPY_BYTES
from unstall.trace.timeline import CopyKind
from unstall.trace.waiting import WaitSite

_SHAPE = re.compile(r"nonzero|unique|masked_select|\bindex(_put)?\b|\bwhere\b|repeat_interleave")
_ITEM = re.compile(r"item|local_scalar_dense|is_nonzero|equal|__bool__")


def match(look: Look) -> Finding | None:
    """The finding, or None when the host's waits cost nothing."""
    facts, shares = look.facts, look.shares
    sites = facts.waits
    if not sites or shares["blocked"] < IDLE_SYNC_SHARE.value:
        return None
    idle = shares["idle_sync"]
    headroom, known_by = look.headroom("sync=0", idle)
    if idle < IDLE_SYNC_SHARE.value and headroom < SEEN_GAIN.value:
        return None
    steps = len(facts.windows)
    worst = sites[0]
    evidence = [
        f"the host waits for the device {percent(shares['blocked'])} of a step, "
        f"{seconds(shares['blocked'] * look.step_s)}; for {percent(idle)} the device is idle meanwhile",
        f"{worst.operator or worst.call} waits {counted(worst.count / steps, 'time')} a step, "
        f"{ns(worst.blocked_ns / steps)} a step in {worst.call}",
        *_copies(look),
    ]
    if known_by == "estimated":
        evidence.append(
            "the replay cannot confirm the gain: the stream waits for something that the trace does not show"
        )
    return Finding(
        pattern="sync-bound",
        cause=_cause(worst),
        culprit=facts.blame.culprit(worst.row, worst.blocked_ns / facts.windows.total_ns, look.where),
        headroom=headroom,
        headroom_known_by=known_by,
        confidence=look.confidence(idle, known_by),
        evidence=evidence,
        advice=[
            "read values back every N steps, not each step; keep running sums on the device",
            "copy with non_blocking=True into pinned memory, and wait for it only where the value is needed",
        ],
    )


def _cause(site: WaitSite) -> str:
    if _SHAPE.search(site.operator):
        return "shape"
    return "item" if _ITEM.search(site.operator) else "copy"


def _copies(look: Look) -> list[str]:
    groups = [group for group in look.facts.copies if group.direction == CopyKind.D2H and group.tiny]
    tiny = sum(group.tiny for group in groups) / len(look.facts.windows)
    if tiny < 1:
        return []
    return [
        f"{counted(tiny, 'copy', 'copies')} of at most {TINY_COPY_BYTES.value / 1024:g} KiB from device to host a step"
    ]
