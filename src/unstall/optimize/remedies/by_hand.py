"""What no remedy writes by itself: a sentence of advice, with its place and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass

from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal
from unstall.optimize.remedies.base import NotApplicable, Remedy
from unstall.records.report import Finding


@dataclass(frozen=True)
class Advice:
    """What a person can do about a finding of one pattern."""

    pattern: str
    cause: str | None
    """None: whatever the cause, where no advice names it."""
    sentence: str
    least_headroom: float = 1.1
    """Speed-up from which it is worth a person's time."""


ADVICE = (
    Advice("input-bound", "network", "fetch a batch's samples at once with threads in __getitems__, over a "
           "requests.Session, which keeps its connections open"),
    Advice("input-bound", "storage", "read it once and keep the result, or read a batch's samples at once with threads "
           "in __getitems__"),
    Advice("input-bound", "collate", "stack with default_collate, which writes into the memory that workers share; "
           "send images as bytes and make them floats on the device; torch.tensor takes one array, not a list of them"),
    Advice("input-bound", "transform", "use array or library operations, keep what the first transforms give, or "
           "decode JPEGs at reduced size (Image.draft)"),
    Advice("input-bound", "threads", "divide the cores: fewer threads for torch, loader workers on other cores "
           "(os.sched_setaffinity in worker_init_fn)"),
    Advice("input-bound", None, "rewrite it with array or library operations, or do it once and keep the result"),
    Advice("transfer-bound", None, "copy the next batch on a CUDA stream of its own while the step computes, and send "
           "images as bytes"),
    Advice("compute-bound", "model", "write it with the library's fused operator, e.g. scaled_dot_product_attention"),
    Advice("compute-bound", "kernel", "look for a cheaper operator or shape"),
    Advice("overhead-bound", "batching", "call the model with many items at once"),
    Advice("overhead-bound", "small-ops", "replace the loop of small operators by one of the library's, or use larger "
           "batches"),
    Advice("sync-bound", None, "keep values on the device until they are needed"),
    Advice("host-bound", None, "use array operations, compute what is the same in every turn once before the loop, and "
           "give any() and all() a generator instead of a list"),
    Advice("callback-bound", "checkpoint", "save less often, or copy the state and write it in a background thread"),
    Advice("callback-bound", None, "do it less often, once an epoch, or in a background thread that gets copies"),
    Advice("environment-bound", None, "write it with array operations, or step several environments at once"),
    Advice("communication-bound", None, "gradient_as_bucket_view=True, larger buckets (bucket_cap_mb), and no_sync() "
           "while gradients accumulate"),
    Advice("memory-growth", "graph", "detach() what is kept between steps from its graph", least_headroom=1.0),
    Advice("memory-growth", None, "bound what is kept between steps", least_headroom=1.0),
)  # fmt: skip


def advice_for(finding: Finding) -> Advice | None:
    """The advice that names the finding's cause, or else that for its pattern."""
    fitting = [one for one in ADVICE if one.pattern == finding.pattern and one.cause in (finding.cause, None)]
    return max(fitting, key=lambda one: one.cause is not None, default=None)


class ByHand(Remedy):
    """Each finding's culprit with the speed-up that its removal would give."""

    name = "by-hand"
    brief = "advice on what only a person can rewrite: its place, and what it is worth; it is never tried"
    patterns = tuple(dict.fromkeys(advice.pattern for advice in ADVICE))
    exactness = "training-changing"
    """Whether the results stay the same is for the person who writes it."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        found = []
        for finding in context.report.findings:
            advice, culprit = advice_for(finding), finding.culprit
            if advice is None or culprit is None or finding.headroom < advice.least_headroom:
                continue
            place = f"{culprit.function} ({culprit.file.rpartition('/')[2]}:{culprit.line})"
            because = f"without it the step would be so much shorter ({finding.headroom_known_by})"
            title = f"{place}: {advice.sentence}"
            found.append(Proposal(title, finding.headroom, because, advice_only=True, key=place))
        if not found:
            raise NotApplicable("no culprit is left that is worth a person's time")
        return found


REMEDY = ByHand()
