"""input-bound: the device is idle while the main loop waits for its next batch."""

from __future__ import annotations

from unstall.records.report import Finding
from unstall.text.units import percent, seconds
from unstall.trace.look import Look
from unstall.trace.thresholds import LOADER_SHARE


def match(look: Look) -> Finding | None:
    """The finding, or None when batches come in time."""
    shares, facts = look.shares, look.facts
    if shares["idle_loader"] < LOADER_SHARE.value:
        return None
    row = facts.loader_row
    name = facts.timeline.names[facts.timeline.host.name[row]] if row >= 0 else ""
    single = "SingleProcess" in name
    headroom = look.gain("data=0")
    workers = "load ahead in workers (num_workers > 0)"
    advice = workers if single else "make batches faster: more workers, cheaper transforms"
    return Finding(
        pattern="input-bound",
        cause="workers" if single else None,
        culprit=facts.blame.culprit(row, shares["loader"], look.where),
        headroom=headroom,
        headroom_known_by="predicted",
        confidence=look.confidence(shares["idle_loader"]),
        evidence=[
            f"{percent(shares['loader'])} of a step, {seconds(shares['loader'] * look.step_s)}, the main loop waits "
            f"for its next batch; for {percent(shares['idle_loader'])} the device is idle meanwhile",
            *(["batches are made in the main process: nothing is loaded ahead"] if single else []),
        ],
        advice=[advice, "unstall run names the slow stage of the loader: reading, transform or collate"],
    )
