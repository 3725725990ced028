"""Communication-bound: what ranks exchange."""

from __future__ import annotations

import msgspec
import pytest
from factory import (
    measurement,
    waiting,
)
from patterncase import check, match

from unstall.diagnose.ranks import notes
from unstall.records.measurements import (
    GradientExchange,
    RankMeasurement,
)
from unstall.records.model import ModelMeasurement


def rank(number, *, own, waited, phase="forward"):
    return RankMeasurement(number, 100 + number, own + waited, {phase: own, "comm": waited}, {})


def test_who_waits_for_ranks_that_were_not_seen_is_unsure():
    ranks = [rank(0, own=0.04, waited=0.06), rank(1, own=0.041, waited=0.059)]
    phases = {"forward": 0.04, "comm": 0.06}
    for seen in (ranks, ranks[:1]):
        others = tuple(range(len(seen), 4))
        finding = match("communication-bound", phases, ranks=seen, world_size=4, unseen_ranks=others)
        assert (finding.cause, finding.confidence, finding.headroom) == (
            "unseen-rank",
            "low",
            pytest.approx(2.5, rel=0.05),
        )
        assert any(f"ranks {others[0]}-3 of 4 not seen" in line for line in finding.evidence)


def test_a_rank_alone_waits_in_backward_for_those_that_were_not_seen():
    phases = {"forward": 0.02, "backward": waiting("backward", 0.08, blocked=0.07)}
    alone = [RankMeasurement(0, 100, 0.1, {"forward": 0.02, "backward": 0.08}, {"backward": 0.07})]
    slow = ModelMeasurement(threads=1)
    finding = match("communication-bound", phases, ranks=alone, world_size=2, unseen_ranks=(1,), model=slow)
    assert finding.share == pytest.approx(0.7)
    assert match("compute-bound", phases, ranks=alone, world_size=2, unseen_ranks=(1,), model=slow) is None


def test_mathematics_is_not_blamed_surely_where_forward_is_blocked_and_no_collective_was_seen():
    phases = {"forward": waiting("forward", 0.08, blocked=0.06), "backward": 0.02}
    ranks = [rank(0, own=0.1, waited=0.0), rank(1, own=0.1, waited=0.0)]
    slow = ModelMeasurement(threads=1)
    measured = measurement(phases, ranks=ranks, world_size=2, model=slow)
    assert "no collective was recorded" in notes(measured)[0]
    assert match("compute-bound", phases, ranks=ranks, world_size=2, model=slow).confidence == "low"
    alone = match("compute-bound", phases, model=slow)
    assert alone.confidence == "medium"


def test_communication_bound_where_all_wait_alike():
    ranks = [rank(0, own=0.04, waited=0.06), rank(1, own=0.041, waited=0.059)]
    finding = check(
        match(
            "communication-bound",
            {"forward": 0.04, "comm": 0.06},
            ranks=ranks,
            model=ModelMeasurement(parameters=10_000_000),
        ),
        "communication-bound",
        headroom=2,
    )
    assert finding.cause == "bandwidth"
    assert match("straggler", {"forward": 0.04, "comm": 0.06}, ranks=ranks) is None


def exchanging(**more):
    values = {"took_s": 0.06, "hidden_s": 0.015, "backward_s": 0.05, "buckets": (16_000_000, 4_000_000)}
    exchange = GradientExchange(**{**values, **more})
    return [msgspec.structs.replace(rank(n, own=0.04, waited=0.06), exchange=exchange) for n in range(2)]


def test_communication_bound_says_what_ddp_exchanges_and_how_much_of_it_is_hidden():
    phases = {"forward": 0.04, "backward": waiting("backward", 0.06, blocked=0.06)}
    finding = match("communication-bound", phases, ranks=exchanging())
    assert "DDP exchanges 20 MB a step in 2 buckets, the largest 16 MB" in finding.evidence
    assert any("60 ms of a step, 25 % of it hidden behind 50 ms of backward" in line for line in finding.evidence)
    assert not any("find_unused_parameters" in line or "bucket_view" in line for line in finding.advice)


def test_communication_bound_by_small_buckets_though_there_are_many_parameters():
    phases = {"forward": 0.04, "backward": waiting("backward", 0.06, blocked=0.06)}
    many = ModelMeasurement(parameters=50_000_000)
    small = exchanging(buckets=(1_000_000,) * 8)
    assert match("communication-bound", phases, ranks=small, model=many).cause == "bucketing"
    assert (
        match("communication-bound", phases, ranks=exchanging(buckets=(200_000_000,)), model=many).cause == "bandwidth"
    )


def test_settings_of_ddp_that_cost_something_are_named():
    phases = {"forward": 0.04, "backward": waiting("backward", 0.06, blocked=0.06)}
    ranks = exchanging(looks_for_unused=True, copies_buckets=True)
    advice = match("communication-bound", phases, ranks=ranks).advice
    assert ["find_unused_parameters" in advice[0], "gradient_as_bucket_view=True" in advice[1]] == [True, True]


def test_blocked_time_in_backward_is_waiting_for_other_ranks():
    ranks = [
        RankMeasurement(n, 100 + n, 0.1, {"forward": 0.03, "backward": 0.07}, {"backward": 0.06}) for n in range(2)
    ]
    phases = {"forward": 0.03, "backward": waiting("backward", 0.07, blocked=0.06)}
    check(match("communication-bound", phases, ranks=ranks), "communication-bound", headroom=2)
