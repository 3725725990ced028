"""Threads of one program that take each other's cores: when that is said, and who is named."""

from __future__ import annotations

import pytest
from factory import CALL, MAIN_PID, measurement, stack
from patterncase import check, host_findings, match

from unstall.records.model import ModelMeasurement

STEP = {"data_wait": 0.003, "forward": 0.025, "backward": 0.03, "optimizer": 0.033}
QUICKEST = {"data_wait": 0.001, "forward": 0.003, "backward": 0.002, "optimizer": 0.01}
CONTENDED = {
    "unhindered_s": QUICKEST,
    "run_delay": 0.4,
    "team_delay_s": 0.08,
    "cores": 2.0,
    "model": ModelMeasurement(threads=2, flops=1e8, peak_flops=1e11),
}


def found(phases=STEP, **more):
    return match("oversubscribed", phases, **{**CONTENDED, **more})


def test_the_model_waits_for_cores_that_another_library_has(code):
    at_work = stack(code.at("main", "# model"), CALL, count=400)
    mixing = stack(code.at("suppress", "# suppress"), count=30)
    finding = check(found(samples=[at_work, mixing]), "oversubscribed", headroom=3)
    assert (finding.cause, finding.culprit.function) == ("thread-pools", "suppress")
    assert finding.share == pytest.approx(0.073 / 0.091)
    assert any("OPENBLAS_NUM_THREADS=1" in line for line in finding.advice)


def test_it_leads_ahead_of_what_is_said_of_the_model():
    assert host_findings(measurement(STEP, **CONTENDED))[0].pattern == "oversubscribed"


def test_more_threads_of_torchs_than_cores():
    finding = check(found(model=ModelMeasurement(threads=8)), "oversubscribed")
    assert (finding.cause, finding.culprit) == ("threads", None)
    assert any("set_num_threads(2)" in line for line in finding.advice)


AMONG_PROCESSES = {"computing": 2, "worker_cpu_s": 0.09, "unhindered_s": {}}


def test_processes_that_each_have_threads_for_all_cores(code):
    sites = [code.site("~optimizer", "main", "# model")]
    finding = check(found(sites=sites, **AMONG_PROCESSES), "oversubscribed")
    assert (finding.cause, finding.share) == ("processes", pytest.approx(0.4))
    assert (finding.culprit.function, finding.culprit.line) == ("main", code.line("# model"))
    assert any(
        "2 processes of the program compute at the same time, each with 2 threads" in e for e in finding.evidence
    )
    assert any("OMP_NUM_THREADS=1" in line for line in finding.advice)


def test_processes_that_take_each_others_time_come_first():
    waits = {**STEP, "data_wait": 0.9}
    among = {**CONTENDED, **AMONG_PROCESSES}
    assert host_findings(measurement(waits, **among))[0].cause == "processes"
    assert host_findings(measurement(waits, **{**among, "run_delay": 0.2}))[0].pattern == "input-bound"


@pytest.mark.parametrize(
    "other",
    [
        {"computing": 1},
        {"model": ModelMeasurement(threads=1)},
        {"run_delay": 0.02},
        {"other_cores": 0.8},
        {"cores": 8.0},
    ],
    ids=["one process", "a thread each", "no wait for a core", "other programs", "cores for all"],
)
def test_processes_with_cores_enough_are_none(other):
    assert found(**{**AMONG_PROCESSES, **other}) is None


@pytest.mark.parametrize(
    "other",
    [
        {"other_cores": 0.8},
        {"worker_cpu_s": 0.03},
        {"run_delay": 0.02},
        {"disturbed": True},
        {"unhindered_s": {}},
        {"team_delay_s": 0.0, "run_delay": 0.1},
        {"samples": [stack(CALL, count=400), stack(CALL, count=100, main=False)]},
    ],
    ids=["other programs", "workers", "no wait for a core", "sampled", "not known", "waits too short", "threads"],
)
def test_it_is_not_said_where_it_may_be_somebody_else(other):
    assert found(**other) is None


def test_a_sample_of_another_process_is_no_thread_of_this_one():
    samples = [stack(CALL, count=400), stack(CALL, count=400, pid=MAIN_PID + 1)]
    assert found(samples=samples) is not None


@pytest.mark.parametrize("pattern, phase", [("callback-bound", "callback"), ("host-bound", "other")])
def test_other_work_that_is_long_itself_frees_the_model_too(pattern, phase):
    phases = {**STEP, phase: 0.04}
    alone = match(pattern, phases)
    together = check(match(pattern, phases, **CONTENDED), pattern)
    assert together.headroom > 2 * alone.headroom
    assert len(together.evidence) == len(alone.evidence) + 1
    assert "OPENBLAS_NUM_THREADS=1" in together.advice[-1]


def test_short_work_does_not_answer_for_the_model():
    phases = {**STEP, "data_wait": 0.03, "callback": 0.02}
    assert match("callback-bound", phases, **CONTENDED).headroom == match("callback-bound", phases).headroom


def test_calls_that_submit_work_take_as_long_as_the_queue_and_tell_nothing():
    assert found({"dispatch": 0.08, "other": 0.01}, unhindered_s={"dispatch": 0.003, "other": 0.01}) is None
