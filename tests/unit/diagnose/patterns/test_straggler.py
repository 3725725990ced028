"""Straggler: one rank makes the others wait."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from factory import (
    CALL,
    measurement,
    stack,
)
from patterncase import check, match

from unstall.diagnose.ranks import late_ranks, notes
from unstall.records.measurements import (
    RankMeasurement,
)


def rank(number, *, own, waited, phase="forward"):
    return RankMeasurement(number, 100 + number, own + waited, {phase: own, "comm": waited}, {})


def test_a_straggler_among_others_that_were_not_seen_is_unsure():
    ranks = [rank(0, own=0.04, waited=0.06), rank(1, own=0.1, waited=0.0)]
    phases = {"forward": 0.04, "comm": 0.06}
    assert match("straggler", phases, ranks=ranks).confidence == "high"
    finding = match("straggler", phases, ranks=ranks, world_size=3, unseen_ranks=(2,))
    assert finding.confidence == "low"
    assert any("rank 2 of 3 not seen" in line for line in finding.evidence)


@pytest.mark.parametrize("phase, cause", [("data_wait", "transform"), ("callback", "logging")])
def test_a_straggler_where_one_makes_the_others_wait(phase, cause):
    ranks = [rank(0, own=0.04, waited=0.06, phase=phase), rank(1, own=0.1, waited=0.0, phase=phase)]
    phases = {phase: 0.04, "comm": 0.06}
    finding = check(match("straggler", phases, ranks=ranks), "straggler", headroom=2)
    assert finding.cause == cause
    assert "rank 1" in finding.evidence[0]
    assert match("communication-bound", phases, ranks=ranks) is None


def test_a_stragglers_culprit_is_in_its_own_rank(code):
    ranks = [rank(0, own=0.04, waited=0.06, phase="other"), rank(1, own=0.1, waited=0.0, phase="other")]
    samples = [stack(code.at("main", "# call suppress"), code.at("suppress", "# suppress"), pid=101), stack(CALL)]
    finding = match("straggler", {"other": 0.04, "comm": 0.06}, ranks=ranks, samples=samples)
    assert (finding.culprit.function, finding.culprit.where) == ("suppress", "rank 1")


def test_a_straggler_of_which_only_backward_is_known():
    ranks = [rank(0, own=0.04, waited=0.06, phase="backward"), rank(1, own=0.1, waited=0.0, phase="backward")]
    finding = match("straggler", {"backward": 0.04, "comm": 0.06}, ranks=ranks)
    assert (finding.cause, len(finding.evidence)) == ("python", 2)


def test_a_program_of_one_process_has_no_ranks_to_wait_for():
    assert match("straggler") is None
    assert match("communication-bound", {"forward": 0.04, "comm": 0.06}) is None


def test_all_ranks_of_a_slow_node_are_late():
    ranks = [rank(i, own=0.1 if i in (4, 5) else 0.04, waited=0.0 if i in (4, 5) else 0.06) for i in range(8)]
    ranks = [msgspec.structs.replace(each, host=f"node{each.rank // 2}") for each in ranks]
    assert [late.rank for late in late_ranks(ranks)] == [4, 5]
    finding = check(match("straggler", {"forward": 0.04, "comm": 0.06}, ranks=ranks), "straggler", headroom=2)
    assert any("late are ranks 4-5, all on node2" in line for line in finding.evidence)


@pytest.mark.parametrize("count", [2, 8, 1024])
def test_ranks_of_nearly_the_same_pace_are_not_late(count):
    pace = np.random.default_rng(count).normal(0.1, 0.001, count)
    ranks = [rank(i, own=float(own), waited=0.01) for i, own in enumerate(pace)]
    assert late_ranks(ranks) == []


def test_ranks_that_ended_early_are_named():
    ranks = [msgspec.structs.replace(rank(i, own=0.1, waited=0), steps=40 if i == 1 else 400) for i in range(3)]
    (note,) = notes(measurement({"forward": 0.1}, ranks=ranks, world_size=3))
    assert note == "rank 1 ended early: the others made up to 400 steps"
