"""communication-bound: ranks wait for collectives that nothing hides."""

from __future__ import annotations

from unstall.diagnose.blame import line_culprit
from unstall.diagnose.features import Features
from unstall.diagnose.ranks import exposed_s, spread
from unstall.records.report import Finding
from unstall.text.units import percent, seconds


def match(features: Features) -> Finding | None:
    """The finding, or None when the numbers do not show the pattern."""
    measured = features.measurement
    if len(measured.ranks) < 2:
        return None
    # What all ranks wait is communication; what only the fast ones wait is a straggler.
    waited = min(exposed_s(rank) for rank in measured.ranks)
    headroom = features.headroom_without(waited)
    if headroom < 1.05 or spread(measured.ranks) > 0.6 * max(exposed_s(rank) for rank in measured.ranks):
        return None
    sites = [site for site in measured.sites if site.seam in ("~backward", "~optimizer")]
    called = [site for site in measured.sites if site.seam.startswith("~comm.")]
    calls = measured.phase("comm")  # as timed, without what backward is blocked for
    in_calls = calls is not None and calls.mean_s > 0.5 * waited
    chosen = called if in_calls and called else sites
    size = measured.model.parameters * 4
    evidence = [
        f"every rank waits {seconds(waited)} a step, {percent(waited / features.step_s)}, for collectives",
        f"{measured.model.parameters / 1e6:.3g} M parameters are {size / 1e6:.3g} MB to exchange a step",
    ]
    return Finding(
        pattern="communication-bound",
        cause="bandwidth" if size > 4e6 else "bucketing",
        culprit=line_culprit(chosen[0], share=min(1.0, waited / features.step_s)) if chosen else None,
        headroom=headroom,
        headroom_known_by="estimated",
        confidence="high",
        evidence=evidence,
        advice=[
            "exchange less often: accumulate gradients over several batches under no_sync()",
            "or exchange less: compress gradients to bf16 (DDP communication hook), larger batches per rank",
        ],
    )
