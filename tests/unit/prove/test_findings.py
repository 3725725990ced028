"""What a proof finds, whichever of its comparers does."""

from __future__ import annotations

from made_up_proofs import SIDES, MadeUp, make_run_of

from unstall.prove.comparing import Comparer
from unstall.prove.findings import Findings
from unstall.prove.last_checks import LastChecks
from unstall.prove.lines.sources import Change
from unstall.prove.runs import Runs
from unstall.prove.trees import Sides
from unstall.records.proof import Difference


def test_sameness_is_never_more_than_any_comparison_says():
    findings = Findings()
    assert findings.sameness == "exact"
    findings.rounded(0.5)
    findings.rounded(0.25)
    assert (findings.sameness, findings.furthest) == ("close", 0.5)
    findings.lower("reduced")
    findings.lower("close")
    assert findings.sameness == "reduced"


def test_what_is_found_several_times_is_said_once():
    findings = Findings()
    for _ in range(2):
        findings.add_once("a")
        findings.add("b")
    assert findings.known_by == ["a", "b", "b"]


def test_what_is_found_of_other_sides_is_found_in_the_proof():
    findings, log = Findings(), []
    runs = Runs(MadeUp(make_run_of, make_run_of), SIDES, budget_s=900.0)
    comparer = Comparer(runs, frozenset({"reduced"}), log.append, findings)
    checks = LastChecks(runs, Change.of(SIDES), comparer, findings, [], [], log.append)
    other = checks._over(Sides(SIDES.original, SIDES.original))
    assert other.runs.sides.changed == SIDES.original and other.comparer.runs is other.runs
    other.comparer.findings.rounded(0.5)
    other.comparer.judge(Difference(kind="values", place="step 1", detail="other numbers"))
    assert (findings.sameness, findings.furthest) == ("reduced", 0.5)
    assert findings.known_by == ["differs, as allowed, from step 1: other numbers on"]
