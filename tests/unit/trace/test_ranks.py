"""Several ranks: collectives matched, clocks aligned, stragglers named, all replayed together."""

from __future__ import annotations

import pytest
from gpu_programs import Program
from patterncase import device_findings

from unstall.diagnose.trace_report import report
from unstall.trace.features import TraceFeatures
from unstall.trace.metrics import TimelineMetrics
from unstall.trace.ranks import Ranks, summary_of
from unstall.trace.timeline import Timeline

RANKS = 4


def _rank(number: int, late: float = 0.0, clock: float = 0.0, kernels: int = 10) -> Timeline:
    """A rank whose collective ends when that of the latest rank does; ``late``: its own host work before it."""
    program = Program()
    program.now = clock
    for _ in range(3):
        began = program.now
        with program.step():
            program.busy(late, "data.py(9): load") if late else None
            for _ in range(kernels):
                program.launch(100.0)
            done = began + 3500.0
            start = max(program.now + 20, *program.free.values())
            program.launch(done - start, "ncclDevKernel_AllReduce", "c10d::allreduce_", stream=20, after=start)
        program.sync()
    return program.timeline(distributedInfo={"rank": number, "world_size": RANKS})


@pytest.fixture(scope="module")
def straggling() -> Ranks:
    lateness = [0.0, 0.0, 2000.0, 0.0]
    return Ranks.of([_rank(n, late, clock=1e6 * n) for n, late in reversed(list(enumerate(lateness)))])


def test_they_are_in_order_and_on_one_clock(straggling):
    assert [one.rank for one in straggling.summaries] == [0, 1, 2, 3]
    matched = straggling.matched
    assert matched.rows.shape == (3, RANKS)
    spread = matched.end_ns.max(axis=1) - matched.end_ns.min(axis=1)
    assert spread.max() < 50_000


def test_the_late_rank_is_named(straggling):
    assert straggling.late_share.argmax() == 2
    assert straggling.late_share[2] > 0.3
    assert straggling.pace_setter == 2
    assert 0.2 < straggling.wait_share < 0.6
    found = {one.pattern: one for one in device_findings(TraceFeatures(straggling))}
    assert "straggler" in found
    assert found["straggler"].culprit.where == "rank 2"
    assert "rank 2" in found["straggler"].evidence[0]


def test_all_ranks_are_replayed_as_one(straggling):
    replay = straggling.replay
    assert replay is not None
    assert replay.faithful
    assert replay.gain("host=0") > 1.3
    assert replay.gain("nccl=0") < replay.gain("host=0")


def test_the_report_has_a_line_a_rank(straggling):
    made = report(straggling, ["a", "b"])
    assert [one.rank for one in made.trace.ranks] == [0, 1, 2, 3]
    assert made.trace.ranks[2].waits < made.trace.ranks[0].waits
    assert made.run.world_size == RANKS


@pytest.mark.parametrize(
    ("given", "world", "says"),
    [
        ([0, 1, 3], 4, "1 of 4 ranks is missing (2)"),
        ([1], 4, "one of 4 ranks"),
        ([0, 3], None, "2 of 4 ranks are missing (1, 2)"),
        ([4, 5, 6], None, None),
        ([0, 1, 1], None, "several files say that they are rank 1"),
        ([0, 1], 16, "14 of 16 ranks are missing (2, 3, 4, 5, 6, 7, 8, 9, …)"),
        ([None, None], None, None),
    ],
)
def test_ranks_that_are_missing_or_there_twice_are_told(given, world, says):
    def timeline(rank: int | None) -> Timeline:
        program = Program()
        with program.step():
            program.launch(100.0)
        info = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": world}}
        return program.timeline(**info)

    made = report(Ranks.of([timeline(rank) for rank in given]), [])
    told = [note for note in made.run.notes if "rank" in note]
    assert bool(told) == (says is not None)
    assert says is None or says in told[0]


def test_of_many_large_ranks_only_figures_are_kept():
    timelines = [_rank(number, late=500.0 * number) for number in range(RANKS)]
    loaded = []

    def load(summary):
        loaded.append(summary.rank)
        return timelines[summary.rank]

    ranks = Ranks([summary_of(TimelineMetrics(timeline)) for timeline in timelines], load)
    found = device_findings(TraceFeatures(ranks))
    assert found[0].evidence
    assert ranks.replay is None
    assert loaded == [ranks.name(ranks.pace_setter)]


def test_ranks_without_common_collectives():
    def lonely(number: int) -> Timeline:
        program = Program()
        with program.step():
            program.launch(100.0)
        return program.timeline(distributedInfo={"rank": number, "world_size": 2})

    ranks = Ranks.of([lonely(0), lonely(1)])
    assert ranks.matched is None
    assert ranks.late_share is None
    assert device_findings(TraceFeatures(ranks))
