"""overhead-bound: the device runs dry because the host submits many small pieces of work, too slowly.

The sign is an empty launch queue: kernels start as soon as they are launched. The share of time inside launch calls
is none: it is the same when the queue is deep and the host far ahead.
"""

from __future__ import annotations

import numpy as np

from unstall.records.report import Finding
from unstall.text.units import percent, seconds
from unstall.trace.look import Look
from unstall.trace.nesting import pick
from unstall.trace.phrases import counted, ns
from unstall.trace.thresholds import PROMPT_SHARE, SUBMITTING_SHARE
from unstall.trace.timeline import NONE

_SMALL_KERNELS = 0.5
_MEMORY_CALLS = 0.02


def match(look: Look) -> Finding | None:
    """The finding, or None when the host keeps the device's queue filled."""
    facts, shares = look.facts, look.shares
    share = shares["idle_submitting"]
    if share < SUBMITTING_SHARE.value:
        return None
    prompt = facts.queue.prompt_share
    headroom = look.gain("launch=0")
    sizes = facts.kernels.sizes
    evidence = [
        f"{percent(share)} of a step, {seconds(share * look.step_s)}, the device is idle "
        "while the host prepares its next work",
    ]
    if prompt is not None:
        evidence.append(
            f"{percent(prompt)} of kernels start as soon as they are launched: "
            + ("the queue is empty" if prompt >= PROMPT_SHARE.value else "for the rest the queue is filled")
        )
    if sizes is not None:
        evidence.append(
            f"{counted(facts.kernels_per_step, 'kernel')} a step, half of them under {ns(sizes.p50)}; "
            f"launch calls take {percent(shares['launch'])} of a step"
        )
    row, part = _slowest_operator(look)
    return Finding(
        pattern="overhead-bound",
        cause=_cause(look, row),
        culprit=facts.blame.culprit(row, part, look.where),
        headroom=headroom,
        headroom_known_by="predicted",
        confidence=look.confidence(share) if (prompt or 0) >= PROMPT_SHARE.value else "medium",
        evidence=[*evidence, *_allocation(look)],
        advice=[
            "capture the step in a CUDA graph (torch.compile with mode='reduce-overhead')",
            "more work a launch: a larger batch, fused and foreach optimizers, torch.compile",
        ],
    )


def _cause(look: Look, row: int) -> str:
    facts = look.facts
    operator = facts.blame.name(row)
    if "optim" in operator.lower():
        return "optimizer"
    sizes = facts.kernels.sizes
    return "small-ops" if sizes is not None and sizes.small >= _SMALL_KERNELS else "batching"


def _slowest_operator(look: Look) -> tuple[int, float]:
    """A launch of the operator that the device waited for longest in all, and that waiting's share of the step."""
    facts = look.facts
    gaps = facts.idle("submitting")
    rows, lengths = facts.after_gaps("submitting")
    calls = facts.timeline.launch[rows]
    operators = facts.blame.origin(calls).operator
    names = pick(facts.timeline.host.name, operators)
    known = names >= 0
    if not known.any():
        return (int(calls[0]) if len(calls) else NONE), look.shares["idle_submitting"]
    total = np.bincount(names[known], weights=lengths[known])
    worst = int(np.argmax(total))
    part = float(total[worst] / lengths.sum()) * gaps.total / facts.windows.total_ns
    return int(calls[np.flatnonzero(names == worst)[0]]), part


def _allocation(look: Look) -> list[str]:
    """Allocating and freeing device memory in the step stops the device."""
    facts = look.facts
    calls, host = facts.activity.calls.memory, facts.timeline.host
    inside = calls & (host.start_ns >= facts.windows.start_ns[0])
    share = float(host.dur_ns[inside].sum()) / facts.windows.total_ns
    if share < _MEMORY_CALLS:
        return []
    return [
        f"allocating and freeing memory by {counted(int(inside.sum()), 'call')} of the driver "
        f"takes {percent(share)} of a step"
    ]
