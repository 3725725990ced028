"""Host-bound: Python beside the model."""

from __future__ import annotations

import pytest
from factory import (
    CALL,
    stack,
)
from patterncase import TRAINING, check, match

from unstall.records.model import OperatorLine


def test_host_bound_by_code_after_the_model(code):
    samples = [
        stack(code.at("main", "# call suppress"), code.at("suppress", "# suppress"), count=80),
        stack(CALL, count=20),
    ]
    sites = [code.site("~forward", "main", "# model")]
    finding = check(match("host-bound", {"forward": 0.02, "other": 0.08}, samples=samples, sites=sites), "host-bound")
    assert (finding.cause, finding.culprit.function) == ("postprocess", "suppress")
    assert finding.headroom == pytest.approx(5, rel=0.1)


@pytest.mark.parametrize(
    ("seconds", "calls", "cause", "word"),
    [
        (0.06, 2, "operators", "argmax"),
        (0.03, 2, "postprocess", "Python"),  # less than half of it
        (0.06, 2000, "postprocess", "Python"),  # calling so many takes less than half
        (0.03, 5000, "postprocess", "5000 small tensor operators"),
    ],
)
def test_operators_of_the_loop_are_told_from_python_code(code, seconds, calls, cause, word):
    """Looked at in ten cycles, two to a measured step."""
    samples = [stack(code.at("main", "# call suppress"), count=80), stack(CALL, count=20)]
    sites = [code.site("~forward", "main", "# model")]
    here, there = ((code.at("main", f"# {mark}"),) for mark in ("call suppress", "model"))
    lines = [
        OperatorLine(here, 5 * seconds, 0.0, calls=5 * calls, operator="aten.argmax.default", per_step=0.2),
        OperatorLine(there, 4.0, 0.0, calls=4, operator="aten.mm.default", per_step=0.2),
    ]
    phases = {"forward": 0.02, "other": 0.08}
    finding = match("host-bound", phases, samples=samples, sites=sites, other_operators=lines)
    assert finding.cause == cause
    said = [each for each in ("argmax", "Python", "5000 small tensor operators") if each in finding.evidence[0]]
    assert said == [word]


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
