"""transfer-bound: copies between host and device take the device's time, or hold up the host."""

from __future__ import annotations

from unstall.records.report import Finding
from unstall.text.units import bytes_, percent, seconds
from unstall.trace.look import Look
from unstall.trace.phrases import counted
from unstall.trace.thresholds import SEEN_GAIN, TINY_COPY_BYTES, TRANSFER_SHARE
from unstall.trace.timeline import CopyKind, HostMemory
from unstall.trace.waiting import CopyGroup

_WORDS = {CopyKind.H2D: "from host to device", CopyKind.D2H: "from device to host"}


def match(look: Look) -> Finding | None:
    """The finding, or None when copies are hidden or few."""
    facts, shares = look.facts, look.shares
    groups = facts.copies
    if not groups:
        return None
    pageable = [group for group in groups if group.memory == HostMemory.PAGEABLE]
    headroom = max(look.gain("copies=overlapped"), look.gain("copies=pinned"))
    share = max(shares["copies"], 1 - 1 / headroom)
    if shares["copies"] < TRANSFER_SHARE.value and (headroom < SEEN_GAIN.value or not _waited_for(groups)):
        return None
    main = groups[0]
    call = int(facts.timeline.launch[main.longest])
    return Finding(
        pattern="transfer-bound",
        cause="pageable" if pageable else "blocking" if _waited_for(groups) else None,
        culprit=facts.blame.culprit(call, main.device_ns / facts.windows.total_ns, look.where),
        headroom=headroom,
        headroom_known_by="predicted",
        confidence=look.confidence(share),
        evidence=[
            f"copies take {percent(shares['copies'])} of a step, {seconds(shares['copies'] * look.step_s)}, "
            "in which nothing is computed",
            *(_line(group, len(facts.windows)) for group in groups[:2]),
        ],
        advice=[
            "pin the host's memory (pin_memory=True) and copy with non_blocking=True, one batch ahead",
            "send less: narrower dtypes, conversion on the device",
        ],
    )


def _waited_for(groups: list[CopyGroup]) -> bool:
    """Whether the host waits for copies that move something: reading single values back is another matter."""
    return any(group.blocking and group.bytes > TINY_COPY_BYTES.value * group.count for group in groups)


def _line(group: CopyGroup, steps: int) -> str:
    memory = f" ({group.memory.name.lower()} memory)" if group.memory else ""
    rate = group.bytes / group.device_ns if group.device_ns else 0.0
    size = f", {bytes_(group.bytes / steps)} at {bytes_(1e9 * rate)}/s" if group.bytes else ""
    held = f"; the host waited for {percent(group.blocking / group.count)} of them" if group.blocking else ""
    return f"{counted(group.count / steps, 'copy', 'copies')} {_WORDS[group.direction]}{memory} a step{size}{held}"
