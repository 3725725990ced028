"""Verdicts from outside: by stacks, cores and ranks alone."""

import pytest

from unstall.benchmark.attached import AttachedObservation
from unstall.diagnose.attached import judge
from unstall.records.observations import Frame, Observation, ResourcePoint, StackSample

TORCH = "/env/lib/python3.11/site-packages/torch"
MAIN = Frame("<module>", "/srv/train.py", 40)
LOADER = Frame("__next__", f"{TORCH}/utils/data/dataloader.py", 700)
FORWARD = Frame("_call_impl", f"{TORCH}/nn/modules/module.py", 1800)
ALL_REDUCE = (Frame("wrapper", f"{TORCH}/distributed/c10d_logger.py", 80),)
ALL_REDUCE += (Frame("all_reduce", f"{TORCH}/distributed/distributed_c10d.py", 2900),)
WORKER = Frame("_worker_loop", f"{TORCH}/utils/data/_utils/worker.py", 300)


def user(function, line=7):
    return Frame(function, "/srv/photos.py", line)


def sample(pid, *frames, count=100):
    return StackSample(pid, "MainThread", frames, count)


def look(samples, *, cores=1.0, ranks=None, seconds=10.0, idle=(), main_thread=None):
    points = [
        ResourcePoint(t, pid, 0.0 if pid in idle else cores * t, 0.0, 1 << 20)
        for t in (0.0, seconds)
        for pid in sorted({sample.pid for sample in samples})
    ]
    return AttachedObservation(
        100, ["train.py"], Observation(0.0, seconds, points, samples=samples), {}, ranks or {}, main_thread or {}
    )


def test_a_wait_for_batches_is_blamed_on_what_makes_them():
    samples = [sample(100, MAIN, LOADER, count=90), sample(100, MAIN, FORWARD, count=10)]
    report = judge(look([*samples, sample(200, WORKER, user("decode"))]))
    assert (report.pattern, report.share) == ("input-bound", pytest.approx(0.9))
    assert (report.culprit.function, report.culprit.where) == ("decode", "worker")
    assert [process.role for process in report.processes] == ["main", "loader worker"]


def test_the_programs_own_code_is_named():
    report = judge(look([sample(100, MAIN, user("augment"), count=80), sample(100, MAIN, FORWARD, count=20)]))
    assert (report.pattern, report.culprit.function) == ("host-bound", "augment")


def test_the_model_is_one_group():
    report = judge(look([sample(100, MAIN, FORWARD, count=60), sample(100, MAIN, user("augment"), count=40)]))
    assert report.pattern == "compute-bound"


def test_the_rank_that_waits_least_is_late():
    waits = [sample(100, MAIN, *ALL_REDUCE, count=95), sample(100, MAIN, FORWARD, count=5)]
    late = [sample(101, MAIN, user("fetch"), count=90), sample(101, MAIN, *ALL_REDUCE, count=10)]
    report = judge(look([*waits, *late], ranks={100: (0, 4), 101: (1, 4)}))
    assert (report.pattern, report.culprit.function, report.culprit.where) == ("straggler", "fetch", "rank 1")
    assert report.processes[0].collective == "all_reduce"
    assert any("ranks 2-3 of 4" in line for line in report.unknown)


def test_where_each_rank_of_a_hung_program_stands():
    samples = [sample(100, MAIN, *ALL_REDUCE), sample(101, MAIN, user("forgets_to_join"))]
    report = judge(look(samples, ranks={100: (0, 2), 101: (1, 2)}, idle={100, 101}))
    assert report.pattern == "hung"
    assert "rank 0 (process 100) stands in the collective all_reduce" in report.evidence[0]
    assert (report.culprit.function, report.culprit.where) == ("forgets_to_join", "rank 1")


@pytest.mark.parametrize(
    "change",
    [
        {"idle": {}},  # it computes
        {"seconds": 1.0},
        {"main_thread": {100: 0.01}},  # it sleeps in one line, again and again
    ],
)
def test_one_stack_alone_is_no_hang(change):
    report = judge(look([sample(100, MAIN, user("wait_for_disk"))], **{"idle": {100}} | change))
    assert report.pattern == "host-bound"


def test_a_wait_for_a_core_is_evidence():
    points = [ResourcePoint(t, 100, 0.1 * t, 0.8 * t, 1) for t in (0.0, 10.0)]
    observation = Observation(0.0, 10.0, points, samples=[sample(100, MAIN, user("augment"))])
    report = judge(AttachedObservation(100, ["train.py"], observation, {}, {}))
    assert any("had no core for 80 %" in line for line in report.evidence)
