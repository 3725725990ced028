"""What a person is advised to do: the sentence for the cause, else that for the pattern."""

from __future__ import annotations

import pytest

from unstall.diagnose.patterns import all_patterns
from unstall.optimize.remedies.by_hand import sentence_for
from unstall.records.report import Finding


def finding(pattern, cause):
    return Finding(
        pattern=pattern, cause=cause, headroom=2.0, headroom_known_by="estimated", confidence="high",
        evidence=[], advice=[],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "cause", "word"),
    [
        ("input-bound", "network", "requests.Session"),
        ("input-bound", "workers", "do it once"),
        ("callback-bound", "checkpoint", "save less often"),
        ("callback-bound", "plotting", "once an epoch"),
        ("memory-growth", "graph", "detach()"),
        ("compute-bound", "precision", "float32_matmul"),
        ("overhead-bound", "small-ops", "compile"),
        ("compute-bound", "threads", None),
    ],
)
def test_the_cause_has_its_own_sentence_or_that_of_its_pattern(pattern, cause, word):
    sentence = sentence_for(finding(pattern, cause))
    assert sentence is None if word is None else word in sentence


def test_no_two_sentences_are_for_the_same_finding():
    for pattern in all_patterns().values():
        causes = [cause for cause, _ in pattern.by_hand]
        assert len(causes) == len(set(causes)) and {*causes} <= {None, *pattern.causes}
