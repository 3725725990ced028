"""Many files, one a rank."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from kineto_files import document, small, write

from unstall.trace import parallel
from unstall.trace.parallel import jobs_for, summaries_of


@pytest.fixture
def ranks(tmp_path):
    return [write(tmp_path / f"r{n}.json.gz", document(small(n + 1), distributedInfo={"rank": n})) for n in range(3)]


@pytest.mark.parametrize("cores", [1, 2])
def test_results_come_in_the_order_of_the_files(ranks, tmp_path, cores):
    shares = []
    bad = write(tmp_path / "bad.json", b"nothing")
    summaries, errors = summaries_of([ranks[2], bad, ranks[0], ranks[1]], shares.append, cores=cores)
    assert [(summary.rank, summary.steps, summary.part) for summary in summaries] == [(2, 3, 0), (0, 1, 0), (1, 2, 0)]
    assert len(errors) == 1 and errors[0].startswith(str(bad))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_no_more_at_a_time_than_memory_allows(ranks, monkeypatch):
    assert jobs_for(ranks, cores=4.0) == 3
    need = parallel._memory(ranks[2])
    memory = psutil.virtual_memory()
    monkeypatch.setattr(parallel.psutil, "virtual_memory", lambda: memory._replace(available=int(need * 2 * 1.1)))
    assert jobs_for(ranks, cores=4.0) == 1
    assert jobs_for([Path("not there")], cores=4.0) == 1
