"""host-bound: the device is idle while the host computes something itself, with hardly any call to the device."""

from __future__ import annotations

import numpy as np

from unstall.records.report import Finding
from unstall.text.units import percent, seconds
from unstall.trace import intervals
from unstall.trace.blame import longest_function
from unstall.trace.facts import Facts
from unstall.trace.look import Look
from unstall.trace.phrases import counted, ns
from unstall.trace.thresholds import HOST_GAP_NS, HOST_SHARE


def match(look: Look) -> Finding | None:
    """The finding, or None when the device does not wait long for the host."""
    facts, shares = look.facts, look.shares
    share = shares["idle_host"]
    if share < HOST_SHARE.value:
        return None
    row, first, told = _longest(facts)
    part = _share_in(facts, row) if row >= 0 else share
    return Finding(
        pattern="host-bound",
        cause="preprocess" if first else "python",
        culprit=facts.blame.culprit(row, part, look.where),
        headroom=look.gain("host=0"),
        headroom_known_by="predicted",
        confidence=look.confidence(share),
        evidence=[
            f"{percent(share)} of a step, {seconds(share * look.step_s)}, the device is idle, "
            "and the host launches nothing",
            *told,
        ],
        advice=[
            "move this work off the loop: into loader workers or another process, or onto the device",
            "prepare the next batch while the device works on this one",
        ],
    )


def _longest(facts: Facts) -> tuple[int, bool, list[str]]:
    """Of the gaps: the host row that fills the longest, whether that is before the first kernel, and evidence.

    The rank and the device that are looked at may have no such gap, though others have.
    """
    gaps = facts.idle("host")
    lengths = gaps.end - gaps.start
    if not len(lengths):
        return -1, False, []
    longest = int(np.argmax(lengths))
    row = longest_function(facts.timeline, int(gaps.start[longest]), int(gaps.end[longest]))
    first = bool(gaps.start[longest] <= facts.windows.start_ns.min() + HOST_GAP_NS.value)
    told = f"{counted(len(lengths) / len(facts.windows), 'such gap')} a step, the longest {ns(float(lengths[longest]))}"
    return row, first, [told + (", before the first kernel" if first else "")]


def _share_in(facts: Facts, row: int) -> float:
    """Share of the steps' time in such gaps while the main thread is in what the host row is an instance of."""
    host = facts.timeline.host
    same = (host.name == host.name[row]) & (host.thread == host.thread[row])
    spans = intervals.union(host.start_ns[same], host.end_ns[same])
    return intervals.both(facts.idle("host"), spans).total / facts.windows.total_ns
