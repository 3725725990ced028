"""Each pattern: a clear case that it must find, and clear ones that it must not."""

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
from patterncase import TRAINING, check, match, training_sites

from unstall.diagnose.patterns import all_patterns
from unstall.records.measurements import (
    LoaderMeasurement,
    ModelMeasurement,
)
from unstall.report.schema import schema


def test_there_is_one_file_for_each_pattern_of_the_contract():
    named = schema()["$defs"]["finding"]["properties"]["pattern"]["description"]
    assert all(name in named for name in all_patterns())


@pytest.mark.parametrize("pattern", sorted(set(all_patterns()) - {"healthy"}))
def test_an_ordinary_step_shows_no_pattern_worth_fixing(pattern):
    finding = match(pattern, model=ModelMeasurement(threads=4, dtype="torch.float32", batch_size=32, forwards=1))
    assert finding is None or finding.headroom < 1.18


def test_healthy_is_always_there_to_stand_between():
    finding = check(match("healthy"), "healthy", headroom=1.0)
    assert finding.headroom == 1.0


# ---------------------------------------------------------------- input-bound

WAITING = {"data_wait": 0.08, "forward": 0.01, "backward": 0.01}


def test_input_bound_without_a_loader_blames_the_function_that_makes_batches(code):
    samples = [stack(code.at("main", "# ask"), NEXT, code.at("pad", "# pad"), count=80), stack(CALL, count=20)]
    finding = check(match("input-bound", WAITING, samples=samples), "input-bound", headroom=3)
    assert (finding.cause, finding.culprit.function, finding.culprit.where) == ("transform", "pad", "main")


def loader(**more):
    values = {"workers": 2, "batch_size": 32, "batches_per_step": 1.0, "service_s": 0.16, "service_cpu_s": 0.15}
    return LoaderMeasurement(**{**values, **more})


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


def test_advice_on_workers_looks_at_the_cores(code):
    def advice(**more):
        return " ".join(match("input-bound", WAITING, **more).advice)

    assert "num_workers=" in advice(loader=loader(workers=0), cores=8.0)
    assert "num_workers=" not in advice(loader=loader(workers=0, iterable=True), cores=8.0)
    assert "not more workers" in advice(loader=loader(), cores=2.0, main_cpu_s=0.05, worker_cpu_s=0.15)


# ---------------------------------------------------------------- the other stalls


@pytest.mark.parametrize(
    "seam, cause",
    [("torch.save", "checkpoint"), ("matplotlib.Figure.savefig", "plotting"), ("wandb.Run.log", "logging")],
)
def test_callback_bound_by_a_library_call(seam, cause):
    finding = check(match("callback-bound", {**TRAINING, "callback": 0.1}, callbacks={seam: 0.1}), "callback-bound")
    assert finding.cause == cause
    assert any(seam in line for line in finding.evidence)


def test_callback_bound_by_the_users_own_function(code):
    plot = lib("matplotlib/figure.py", "savefig")
    samples = [stack(code.at("main", "# call suppress"), code.at("suppress", "# suppress"), plot), stack(CALL)]
    finding = check(match("callback-bound", {**TRAINING, "other": 0.1}, samples=samples), "callback-bound")
    assert (finding.cause, finding.culprit.function) == ("plotting", "suppress")


def test_host_bound_by_code_after_the_model(code):
    samples = [
        stack(code.at("main", "# call suppress"), code.at("suppress", "# suppress"), count=80),
        stack(CALL, count=20),
    ]
    sites = [code.site("~forward", "main", "# model")]
    finding = check(match("host-bound", {"forward": 0.02, "other": 0.08}, samples=samples, sites=sites), "host-bound")
    assert (finding.cause, finding.culprit.function) == ("postprocess", "suppress")
    assert finding.headroom == pytest.approx(5, rel=0.1)


def test_host_bound_by_the_garbage_collector():
    finding = check(match("host-bound", {**TRAINING, "other": 0.1}, gc_s=0.09), "host-bound")
    assert finding.cause == "gc"


@pytest.mark.parametrize("seam, cause", [("~sync.item", "item"), ("~sync.cpu", "copy"), ("~sync.nonzero", "shape")])
def test_sync_bound_names_the_call(code, seam, cause):
    finding = check(
        match("sync-bound", {**TRAINING, "sync": 0.1}, sites=[code.site(seam, "suppress", "# suppress")]), "sync-bound"
    )
    assert (finding.cause, finding.culprit.function) == (cause, "suppress")


@pytest.mark.parametrize("pinned, cause", [(False, "pageable"), (True, "blocking")])
def test_transfer_bound_tells_pageable_from_blocking_copies(pinned, cause):
    finding = check(
        match("transfer-bound", {**TRAINING, "transfer": 0.1}, loader=loader(pin_memory=pinned)), "transfer-bound"
    )
    assert finding.cause == cause


def test_environment_bound_by_its_step(code):
    gym = lib("gymnasium/core.py", "step")
    samples = [
        stack(code.at("main", "# model"), gym, code.at("suppress", "# suppress"), count=90),
        stack(CALL, count=10),
    ]
    finding = check(
        match("environment-bound", {"env": 0.09, "forward": 0.01}, kind="env", envs=8, samples=samples),
        "environment-bound",
        headroom=5,
    )
    assert (finding.cause, finding.culprit.function) == ("env", "suppress")


def test_environment_bound_by_one_environment_at_a_time(code):
    """The policy's calls cost more than the environment, and each is for one observation."""
    finding = check(
        match(
            "environment-bound",
            {"env": 0.01, "forward": 0.09},
            kind="env",
            envs=1,
            sites=[code.site("~env.step", "main", "# ask")],
        ),
        "environment-bound",
    )
    assert finding.cause == "batching"


def test_a_program_without_environments_is_not_environment_bound():
    assert match("environment-bound") is None
