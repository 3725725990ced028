"""Run the patterns on a trace and rank what they found."""

from __future__ import annotations

from unstall.records.report import Finding
from unstall.trace.look import Look
from unstall.trace.patterns import all_patterns
from unstall.trace.thresholds import IDLE_SYNC_SHARE, MOSTLY_COMPUTING, PROMPT_SHARE, WORTH_GAIN


def findings(look: Look) -> list[Finding]:
    """The verdict first, then the others by what they would gain."""
    found = [finding for match in all_patterns() if (finding := match(look)) is not None]
    verdict, *others = sorted(found, key=lambda finding: -_rank(finding, look))
    return [verdict, *(finding for finding in others if finding.pattern != "healthy")]


def _rank(finding: Finding, look: Look) -> float:
    """Predicted gain, but for three rules.

    Computing is what is left when nothing else is worth fixing, and health where not even that is much. While the
    device mostly computes, a host that is late now and then, or waits for a busy device, is the lesser matter.
    """
    worth = WORTH_GAIN.value
    if finding.pattern == "healthy":
        return worth * 0.98
    if finding.pattern == "compute-bound":
        return worth
    if look.shares["compute"] >= MOSTLY_COMPUTING.value and _in_its_shadow(finding, look):
        return min(finding.headroom, worth * 0.99)
    return finding.headroom


def _in_its_shadow(finding: Finding, look: Look) -> bool:
    """Whether a device that is mostly busy hides most of what was found."""
    if finding.pattern == "overhead-bound":
        return (look.facts.queue.prompt_share or 0.0) < PROMPT_SHARE.value
    return finding.pattern == "sync-bound" and look.shares["idle_sync"] < IDLE_SYNC_SHARE.value
