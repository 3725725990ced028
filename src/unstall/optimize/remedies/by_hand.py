"""What no remedy can write: told with its place and what it is worth, for a person."""

from __future__ import annotations

from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit

NAME = "by-hand"
AREA: Area = "compute"
EXACTNESS: Exactness = "training-changing"
"""Nothing here is tried: whether the results stay the same is for the person who writes it."""

_WORTH = 1.1
_HOW = {
    ("compute-bound", "model"): "write it with the library's fused operator, e.g. scaled_dot_product_attention",
    ("compute-bound", "kernel"): "look for a cheaper operator or shape",
    ("overhead-bound", "batching"): "call the model with many items at once",
    ("overhead-bound", "small-ops"): "replace the loop of small operators by one of the library's",
    ("host-bound", None): "rewrite it with array operations",
    ("callback-bound", None): "do it less often, or once an epoch",
    ("environment-bound", None): "write it with array operations, or step several environments at once",
    ("input-bound", None): "rewrite it with array or library operations, or do it once and keep the result",
    ("sync-bound", None): "keep values on the device until they are needed",
    ("communication-bound", None): "larger buckets, no_sync() while gradients accumulate",
    ("memory-growth", None): "detach what is kept between steps",
}


def propose(case: Case) -> list[Proposal] | Unfit:
    """Each finding's culprit with the speed-up that its removal would give."""
    found = []
    for finding in case.report.findings:
        how = _HOW.get((finding.pattern, finding.cause)) or _HOW.get((finding.pattern, None))
        if how is None or finding.culprit is None or finding.headroom < _WORTH:
            continue
        culprit = finding.culprit
        place = f"{culprit.function} ({culprit.file.rpartition('/')[2]}:{culprit.line})"
        found.append(
            Proposal(
                NAME, f"{place}: {how}", EXACTNESS, finding.headroom,
                f"without it the step would be so much shorter ({finding.headroom_known_by})", advice=True, key=place,
            )
        )  # fmt: skip
    return found or Unfit("no culprit is left that is worth a person's time")
