"""What no remedy writes by itself: a sentence of advice, with its place and what it is worth."""

from __future__ import annotations

from unstall.diagnose.patterns import all_patterns
from unstall.diagnose.patterns.base import worth
from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.source.errors import NotApplicable
from unstall.records.report import Finding


def sentence_for(finding: Finding) -> str | None:
    """What the pattern says that a person can do about this cause, or else about any; None where it says nothing."""
    pattern = all_patterns().get(finding.pattern)
    if pattern is None or worth(finding) < pattern.by_hand_from:
        return None
    sentences = dict(pattern.by_hand)
    return sentences.get(finding.cause, sentences.get(None))


class ByHand(Remedy):
    """Each finding's culprit with the gain to expect of a person's work on it."""

    name = "by-hand"
    brief = "advice on what only a person can rewrite: where it is, and what it would gain; never tried"
    needs = "a finding with a culprit"
    patterns = tuple(name for name, pattern in all_patterns().items() if pattern.by_hand)
    exactness = "training-changing"
    """Whether the results stay the same is for the person who writes it."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        proposals = []
        for finding in context.report.findings:
            sentence, culprit = sentence_for(finding), finding.culprit
            if sentence is None or culprit is None:
                continue
            location = f"{culprit.function} ({culprit.file.rpartition('/')[2]}:{culprit.line})"
            expected = finding.expected_gain
            because = f"ceiling without it {finding.headroom:.2f}×, {finding.headroom_known_by}"
            if "untimed" in finding.traits:
                because = "it ends a long run, whatever its speed"
            elif expected is not None:
                because = f"the expected gain of {expected.remedy}: {expected.low:.2f} to {expected.high:.2f}"
            title = f"{location}: {sentence}"
            proposals.append(Proposal(title, worth(finding), because, advice_only=True, key=location))
        if not proposals:
            raise NotApplicable("no culprit is left that is worth a person's time")
        return proposals


REMEDY = ByHand()
