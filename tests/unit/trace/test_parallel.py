"""Many files, one a rank."""

from __future__ import annotations

import psutil
import pytest
from kineto_files import document, small, write

from unstall.trace.readers import parallel
from unstall.trace.readers.parallel import jobs_for, read_each


def rank_and_steps(timeline):
    return timeline.rank, len(timeline.steps)


@pytest.fixture
def ranks(tmp_path):
    return [write(tmp_path / f"r{n}.json.gz", document(small(n + 1), distributedInfo={"rank": n})) for n in range(3)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_the_order_of_the_files(ranks, tmp_path, jobs):
    told = []
    bad = write(tmp_path / "bad.json", b"nothing")
    outcomes = read_each([ranks[2], bad, ranks[0], ranks[1]], rank_and_steps, jobs, told.append)
    assert [outcome.results for outcome in outcomes] == [((2, 3),), (), ((0, 1),), ((1, 2),)]
    assert [bool(outcome.error) for outcome in outcomes] == [False, True, False, False]
    assert outcomes[1].error.startswith(str(bad))
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_no_more_at_a_time_than_memory_allows(ranks, monkeypatch):
    monkeypatch.setattr(parallel, "usable_cores", lambda: 4.0)
    assert jobs_for(ranks) == 3
    need = parallel._memory(ranks[2])
    memory = psutil.virtual_memory()
    monkeypatch.setattr(parallel.psutil, "virtual_memory", lambda: memory._replace(available=int(need * 2 * 1.1)))
    assert jobs_for(ranks) == 1
    assert jobs_for(["not there"]) == 1
