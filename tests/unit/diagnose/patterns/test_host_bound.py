"""Host-bound: Python beside the model."""

from __future__ import annotations

import pytest
from factory import (
    CALL,
    stack,
)
from patterncase import TRAINING, check, match


def test_host_bound_by_code_after_the_model(code):
    samples = [
        stack(code.at("main", "# call suppress"), code.at("suppress", "# suppress"), count=80),
        stack(CALL, count=20),
    ]
    sites = [code.site("~forward", "main", "# model")]
    finding = check(match("host-bound", {"forward": 0.02, "other": 0.08}, samples=samples, sites=sites), "host-bound")
    assert (finding.cause, finding.culprit.function) == ("postprocess", "suppress")
    assert finding.headroom == pytest.approx(5, rel=0.1)


@pytest.mark.parametrize("idle", [0.0, 0.02])
def test_what_is_done_before_the_model_is_no_matter_of_a_dataset_in_a_server(code, idle):
    sites = [code.site("~data.next", "main", "# ask"), code.site("~forward", "main", "# model")]
    samples = [stack(code.at("main", "# ask"), code.at("pad", "# pad"), count=80), stack(CALL, count=20)]
    phases = {"forward": 0.02, "other": 0.06, "idle": idle} if idle else {"forward": 0.02, "other": 0.08}
    finding = match("host-bound", phases, samples=samples, sites=sites)
    assert finding.cause == "preprocess"
    assert ("dataset" in finding.advice[0]) == (not idle)


def test_host_bound_by_the_garbage_collector():
    finding = check(match("host-bound", {**TRAINING, "other": 0.1}, gc_s=0.09), "host-bound")
    assert finding.cause == "gc"
