"""Input-bound: what feeds the loop holds it up."""

from __future__ import annotations

import pytest
from factory import (
    CALL,
    FETCH,
    NEXT,
    WORKER,
    WORKER_PID,
    lib,
    stack,
)
from patterncase import check, loader, match, training_sites

from unstall.records.model import ModelMeasurement

WAITING = {"data_wait": 0.08, "forward": 0.01, "backward": 0.01}


def test_input_bound_without_a_loader_blames_the_function_that_makes_batches(code):
    samples = [stack(code.at("main", "# ask"), NEXT, code.at("pad", "# pad"), count=80), stack(CALL, count=20)]
    finding = check(match("input-bound", WAITING, samples=samples), "input-bound", headroom=3)
    assert (finding.cause, finding.culprit.function, finding.culprit.where) == ("transform", "pad", "main")


def test_input_bound_blames_the_thread_that_makes_what_the_main_thread_only_waits_for(code):
    asking = stack(code.at("main", "# ask"), NEXT, count=80)
    making = stack(lib("spdl/pipeline/_pipeline.py", "_run"), code.at("pad", "# pad"), main=False, count=90)
    sites = [code.site("~data.next", "main", "# ask"), *training_sites(code)]
    finding = check(match("input-bound", WAITING, samples=[asking, making], sites=sites), "input-bound", headroom=3)
    assert finding.culprit.function == "pad"
    finding = check(match("input-bound", WAITING, samples=[asking], sites=sites), "input-bound", headroom=3)
    assert finding.culprit.function == "main"


INDEX = lib("torch/utils/data/dataloader.py", "_BaseDataLoaderIter._next_index")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sampler_is_blamed_where_it_runs_and_workers_do_not_hide_it(code, workers):
    ask = code.at("main", "# ask")
    drawing = stack(ask, NEXT, INDEX, lib("torch/utils/data/sampler.py", "__iter__"), code.at("pad", "# pad"), count=60)
    reading = stack(ask, NEXT, FETCH, code.at("main", "# ask"), count=20)
    working = [in_worker(code, "main", "# ask")] if workers else []
    finding = match(
        "input-bound",
        WAITING,
        loader=loader(workers=workers),
        worker_pids=frozenset({WORKER_PID}) if workers else frozenset(),
        samples=[drawing, reading, *working, stack(CALL, count=20)],
    )
    assert (finding.cause, finding.culprit.function, finding.culprit.where) == ("sampler", "pad", "main")
    assert not any("num_workers" in line or "more workers" in line for line in finding.advice)
    assert any("sampler" in line and ("workers get" in line) == bool(workers) for line in finding.evidence)


def test_a_sampler_that_takes_a_little_of_the_wait_is_not_why_batches_come_late(code):
    ask = code.at("main", "# ask")
    drawing = stack(ask, NEXT, INDEX, lib("torch/utils/data/sampler.py", "__iter__"), count=30)
    reading = stack(ask, NEXT, FETCH, code.at("pad", "# pad"), count=50)
    finding = match("input-bound", WAITING, loader=loader(workers=0), samples=[drawing, reading, stack(CALL, count=20)])
    assert finding.cause == "transform"


def in_worker(code, function, snippet, *deeper, count=100):
    return stack(WORKER, FETCH, code.at(function, snippet), *deeper, pid=WORKER_PID, count=count)


def test_input_bound_by_workers_work_blames_it_in_the_worker(code):
    finding = check(
        match(
            "input-bound",
            WAITING,
            loader=loader(),
            worker_pids=frozenset({WORKER_PID}),
            samples=[in_worker(code, "pad", "# pad")],
        ),
        "input-bound",
        headroom=3,
    )
    assert (finding.cause, finding.culprit.function, finding.culprit.where) == ("transform", "pad", "worker")
    assert finding.headroom_known_by == "predicted"


def test_workers_that_take_the_cores_are_blamed_though_nothing_waits(code):
    """Lesson 1 of the design: the model is slow because the workers hold the cores."""
    finding = check(
        match(
            "input-bound",
            {"data_wait": 0.005, "forward": 0.035, "backward": 0.06},
            loader=loader(service_s=0.19, service_cpu_s=0.14),
            cores=2.0,
            main_cpu_s=0.05,
            worker_cpu_s=0.145,
            run_delay=0.4,
            model=ModelMeasurement(threads=2),
            samples=[in_worker(code, "pad", "# pad")],
        ),
        "input-bound",
        headroom=1.5,
    )
    assert finding.culprit.function == "pad"
    assert any("core" in line for line in finding.evidence)


@pytest.mark.parametrize(("worker_cpu_s", "found"), [(0.03, True), (0.008, False)])
def test_workers_that_take_a_fifth_are_blamed_where_the_models_threads_wait_for_cores(code, worker_cpu_s, found):
    finding = match(
        "input-bound",
        {"data_wait": 0.005, "forward": 0.035, "backward": 0.06},
        loader=loader(service_s=0.19, service_cpu_s=0.14),
        cores=2.0,
        main_cpu_s=0.11,
        worker_cpu_s=worker_cpu_s,
        team_delay_s=0.04,
        model=ModelMeasurement(threads=2),
        samples=[in_worker(code, "pad", "# pad")],
    )
    assert (finding is not None and finding.headroom > 1.2) is found


@pytest.mark.parametrize(
    ("other_cores", "words"), [(0.2, "NumPy and torch keep"), (1.5, "other processes take 1.5 of the 2 cores")]
)
def test_who_takes_the_cores_from_the_loader_is_said(code, other_cores, words):
    finding = match(
        "input-bound",
        WAITING,
        loader=loader(workers=0),
        cores=2.0,
        main_cpu_s=0.09,
        team_delay_s=0.08,
        other_cores=other_cores,
        samples=[stack(code.at("main", "# ask"), NEXT, code.at("pad", "# pad"), count=80), stack(CALL, count=20)],
    )
    assert any(words in line for line in finding.evidence), finding.evidence


@pytest.mark.parametrize("workers", [0, 2])
def test_where_no_cpu_was_measured_the_wait_alone_speaks(code, workers):
    """As of a process that could not be looked at: with no core used by anyone, nobody takes any from the model."""
    finding = match(
        "input-bound",
        WAITING,
        loader=loader(workers=workers),
        main_cpu_s=0.0,
        worker_cpu_s=0.0,
        samples=[stack(code.at("main", "# ask"), NEXT, code.at("pad", "# pad"), count=80), stack(CALL, count=20)],
    )
    check(finding, "input-bound", headroom=3)


def test_workers_on_cores_of_their_own_are_not_blamed(code):
    finding = match(
        "input-bound",
        {"data_wait": 0.001, "forward": 0.04, "backward": 0.06},
        loader=loader(service_s=0.15, service_cpu_s=0.14),
        cores=16.0,
        main_cpu_s=0.1,
        worker_cpu_s=0.15,
    )
    assert finding is None


def test_input_bound_by_the_network(code):
    samples = [in_worker(code, "download", "# get", lib("requests/api.py", "get"))]
    finding = check(
        match(
            "input-bound",
            WAITING,
            loader=loader(service_cpu_s=0.01, service_blocked_s=0.15, service_network_s=0.14),
            samples=samples,
        ),
        "input-bound",
    )
    assert (finding.cause, finding.culprit.function) == ("network", "download")
    assert finding.culprit.via == "requests.api.get"


def test_input_bound_by_storage(code):
    finding = check(
        match(
            "input-bound",
            WAITING,
            loader=loader(service_cpu_s=0.02, service_blocked_s=0.14),
            samples=[in_worker(code, "fetch", "# read")],
        ),
        "input-bound",
    )
    assert (finding.cause, finding.culprit.function) == ("storage", "fetch")


@pytest.mark.parametrize(("read_chars", "cause"), [(1e5, "storage"), (100.0, "transform")])
def test_workers_that_sleep_wait_for_storage_only_if_they_read_files(code, read_chars, cause):
    slow = loader(service_cpu_s=0.02, service_blocked_s=0.14)
    samples = [in_worker(code, "pad", "# pad")]
    finding = match("input-bound", WAITING, loader=slow, samples=samples, read_chars=read_chars)
    assert finding.cause == cause


def test_input_bound_by_collate(code):
    finding = check(
        match(
            "input-bound",
            WAITING,
            loader=loader(workers=0, collate="pad", collate_s=0.14),
            samples=[stack(code.at("main", "# ask"), NEXT, FETCH, code.at("pad", "# pad"), count=90)],
        ),
        "input-bound",
    )
    assert (finding.cause, finding.culprit.function) == ("collate", "pad")


def test_input_bound_by_starting_workers_each_epoch(code):
    finding = check(
        match(
            "input-bound",
            WAITING,
            loader=loader(start_s=0.07, epochs=20, service_s=0.01, service_cpu_s=0.01),
            sites=training_sites(code),
        ),
        "input-bound",
    )
    assert finding.cause == "workers"
    assert (finding.culprit.function, finding.culprit.line) == ("main", code.line("# ask"))
    assert "persistent_workers" in finding.advice[0]


def test_workers_that_start_anew_are_blamed_where_most_is_waited_for(code):
    again = loader(start_s=0.07, epochs=20, service_s=0.01, service_cpu_s=0.01)
    sites = [code.site("~data.iter", "pad", "# pad"), code.site("~data.iter", "main", "# ask")]
    samples = [stack(code.at("pad", "# pad"), NEXT, count=10), stack(code.at("main", "# ask"), NEXT, count=60)]
    finding = match("input-bound", WAITING, loader=again, sites=sites, samples=samples)
    assert (finding.cause, finding.culprit.function) == ("workers", "main")


def test_workers_that_stay_are_not_told_to_stay(code):
    kept = loader(start_s=0.07, epochs=20, service_s=0.01, service_cpu_s=0.01, persistent_workers=True)
    finding = check(match("input-bound", WAITING, loader=kept, sites=training_sites(code)), "input-bound")
    assert finding.cause != "workers"
    assert not any("persistent_workers" in line for line in finding.advice)


def test_advice_on_workers_looks_at_the_cores(code):
    def advice(**more):
        return " ".join(match("input-bound", WAITING, **more).advice)

    assert "num_workers=" in advice(loader=loader(workers=0), cores=8.0)
    assert "num_workers=" not in advice(loader=loader(workers=0, iterable=True), cores=8.0)
    assert "more workers would not help" in advice(loader=loader(), cores=2.0, main_cpu_s=0.05, worker_cpu_s=0.15)
