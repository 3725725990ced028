"""Who makes the report of several machines, and what it says of those that are missing, dead or strange."""

import msgspec
import pytest
from gathercase import Job
from spanfactory import Recording

from unstall.benchmark.gather import parts
from unstall.benchmark.gather.store import FolderStore
from unstall.benchmark.measure import measure
from unstall.diagnose.overview import RunContext
from unstall.diagnose.run_report import DiagnosedRun
from unstall.diagnose.summary import report
from unstall.records.observations import Observation
from unstall.runs.gather import Gathering


def diagnosis(number, *, world=4, host="node0", work=0.02):
    """One rank's run, as its machine alone sees it."""
    r = Recording(pid=100 + number, parent=50)
    r.emit_fact("process", pid=r.pid, parent=50, host=host)
    r.emit_fact("rank", rank=number, world_size=world, host=host, job="job", restart=0)
    for _ in range(400):
        r.do("~forward", work)
        r.do("~backward", 0.2 - work, cpu=0.01)
        r.do("~optimizer", 0.005)
    observation = Observation(999.0, 1200.0)
    measured = measure([r.process()], observation)
    run = RunContext("id", ["train.py"], "2026-01-01T00:00:00Z", 0, {}, observation)
    return DiagnosedRun(run, report(run, measured.measurement), measured, [r.process()])


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path)


def gathered(store, run, messages=None, **changes):
    told = messages if messages is not None else []
    gathering = Gathering(store, changes.pop("since", None), changes.pop("wait_s", 0.0), told.append)
    return gathering.gather(run)


def left(store, job, node, **changes):
    """A part that another machine has left."""
    return parts.publish(store, job.part(node, **changes), job.stacks(node), f"{node:08x}")


def test_the_machine_of_rank_0_makes_the_report_of_all(store):
    job = Job(nodes=4, ranks_per_node=1, late={2: 0.1}, steps=400)
    for node in (1, 2, 3):
        left(store, job, node)
    result = gathered(store, diagnosis(0))
    found = result.diagnosis.report
    assert (result.elsewhere, found.run.world_size) == (None, 4)
    assert [rank.rank for rank in found.communication.ranks] == [0, 1, 2, 3]
    assert (list(found.communication.unseen), list(found.communication.late)) == ([], [2])
    assert found.verdict.pattern == "straggler"
    assert (found.verdict.culprit.where, found.verdict.culprit.function) == ("rank 2", "fetch_slowly")


def test_the_others_leave_once_rank_0_is_there(store):
    left(store, Job(nodes=4, ranks_per_node=1), 0)
    messages = []
    result = gathered(store, diagnosis(1), messages, wait_s=600.0)
    assert result.elsewhere == store.address("job/report.json")
    assert messages == []


def test_without_rank_0_the_lowest_stands_in(store):
    left(store, Job(nodes=4, ranks_per_node=1), 3)
    messages = []
    result = gathered(store, diagnosis(1), messages, wait_s=0.1)
    assert [rank.rank for rank in result.diagnosis.report.communication.ranks] == [1, 3]
    assert any("ranks 0, 2 of 4 not seen" in note for note in result.diagnosis.report.run.notes)
    assert "waiting up to 0 s for 2 of 4 ranks" in messages[0]
    assert gathered(store, diagnosis(2)).elsewhere is not None


def test_dead_and_restarted_ranks_are_named(store):
    job = Job(nodes=4, ranks_per_node=1, ended={1: 50}, restarts={3: 1})
    left(store, job, 1, exit_code=-9)
    left(store, job, 2)
    left(store, job, 3)
    notes = "\n".join(gathered(store, diagnosis(0)).diagnosis.report.run.notes)
    assert "rank 1 ended early" in notes
    assert "node1 (rank 1) ended by signal 9" in notes
    assert "a rank on node3 (rank 3) was started again" in notes


def test_strange_parts_are_left_out_and_said(store):
    job = Job(nodes=4, ranks_per_node=1)
    left(store, job, 1)
    store.write("job/0000002-node2-00000002.part", b"rubbish")
    parts.publish(store, job.part(3, world_size=8), [], "00000003")
    doubled = msgspec.structs.replace(job.part(1), host="other")
    parts.publish(store, doubled, [], "ffffffff")
    found = gathered(store, diagnosis(0)).diagnosis.report
    assert list(found.communication.unseen) == [2, 3]
    notes = "\n".join(found.run.notes)
    assert "is no part of a run" in notes and "is of another run" in notes and "another machine recorded too" in notes


def test_a_part_without_its_stacks_still_counts(store):
    job = Job(nodes=4, ranks_per_node=1, late={2: 0.1})
    name = left(store, job, 2)
    store.remove("job/" + name.replace(".part", ".stacks"))
    found = gathered(store, diagnosis(0)).diagnosis.report
    assert found.verdict.pattern == "straggler"
    assert any("no stacks of node2" in note for note in found.run.notes)


def test_a_run_without_ranks_is_reported_alone(store):
    run = diagnosis(0, world=1)
    result = gathered(store, run)
    assert result.elsewhere is None
    assert any("nothing to gather" in note for note in result.diagnosis.report.run.notes)


def test_ctrl_c_ends_the_wait_and_not_the_report(store, monkeypatch):
    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("unstall.runs.gather.time.sleep", interrupted)
    found = gathered(store, diagnosis(0), wait_s=600.0).diagnosis.report
    assert list(found.communication.unseen) == [1, 2, 3]
