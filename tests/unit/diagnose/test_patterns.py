"""Each pattern: a clear case that it must find, and clear ones that it must not."""

from __future__ import annotations

import pytest
from factory import (
    CALL,
    FETCH,
    NEXT,
    WORKER,
    WORKER_PID,
    Source,
    lib,
    measurement,
    stack,
)
from patterncase import TRAINING, check, host_findings, match, training_sites

from unstall.diagnose.patterns import all_patterns
from unstall.records.measurements import CompiledFunction, LoaderMeasurement
from unstall.records.model import FrozenPart, ModelMeasurement, Recomputation
from unstall.records.observations import Frame
from unstall.records.report import CallbackTime
from unstall.records.run import Generation
from unstall.report.schema import schema

COMPUTING = ModelMeasurement(
    threads=4, dtype="torch.float32", batch_size=32, forwards=1, flops=5e9, peak_flops=1e11, flops_coverage=1.0
)
"""Half of the machine's peak in an ordinary step."""


def test_there_is_one_file_for_each_pattern_of_the_contract():
    named = schema()["$defs"]["finding"]["properties"]["pattern"]["description"]
    assert all(name in named for name in all_patterns())


@pytest.mark.parametrize("pattern", sorted(set(all_patterns()) - {"healthy", "unexplained"}))
def test_an_ordinary_step_shows_no_pattern_worth_fixing(pattern):
    finding = match(pattern, model=COMPUTING)
    assert finding is None or finding.headroom < 1.18


@pytest.mark.parametrize("phases", [TRAINING, {"other": 0.1}, {"validation": 0.1, "forward": 0.02}])
@pytest.mark.parametrize("model", [ModelMeasurement(), COMPUTING])
def test_either_healthy_or_unexplained_stands_between(phases, model):
    found = [match(pattern, phases, model=model) for pattern in ("healthy", "unexplained")]
    assert sum(finding is not None for finding in found) == 1


# ---------------------------------------------------------------- idle


def test_a_server_without_requests_most_of_the_time_is_idle():
    finding = check(match("idle", {"idle": 0.08, "forward": 0.01, "other": 0.01}), "idle", headroom=3)
    assert (finding.cause, finding.share) == ("requests", pytest.approx(0.8))
    assert match("idle", {"idle": 0.05, "forward": 0.03, "other": 0.02}) is None


# ---------------------------------------------------------------- input-bound

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


# ---------------------------------------------------------------- the other stalls


@pytest.mark.parametrize(
    "seam, cause",
    [("torch.save", "checkpoint"), ("matplotlib.Figure.savefig", "plotting"), ("wandb.Run.log", "logging")],
)
def test_callback_bound_by_a_library_call(seam, cause):
    framework, *owner, event = seam.split(".")
    name = ".".join(owner) or framework
    call = CallbackTime(
        framework=framework, callback=name, event=event, calls=50, total_s=5.0, mean_s=0.1, share=0.5, step_s=0.1
    )
    finding = check(match("callback-bound", {**TRAINING, "callback": 0.1}, callbacks=[call]), "callback-bound")
    assert finding.cause == cause
    assert any(f"{call.name} took 100 ms a call, in 50 calls" in line for line in finding.evidence)
    assert finding.culprit is None


def test_callback_bound_by_a_frameworks_callback_without_samples(code):
    place = {"file": code.file, "line": code.line("# suppress")}
    often, rare = (
        CallbackTime(
            framework="lightning",
            callback=name,
            event="on_train_batch_end",
            calls=10,
            total_s=1.0,
            mean_s=0.1,
            share=0.5,
            step_s=step_s,
            **place,
        )
        for name, step_s in (("Checkpoint", 0.08), ("Board", 0.02))
    )
    finding = match("callback-bound", {**TRAINING, "callback": 0.1}, callbacks=[rare, often])
    assert (finding.culprit.function, finding.culprit.line) == ("Checkpoint.on_train_batch_end", place["line"])
    assert finding.cause == "checkpoint" and "save less often" in finding.advice[0]
    finding = match("callback-bound", {**TRAINING, "callback": 0.1}, callbacks=[rare])
    assert finding.cause == "logging" and "not at every on_train_batch_end" in finding.advice[0]


def test_callback_bound_by_the_users_own_function(code):
    plot = lib("matplotlib/figure.py", "savefig")
    samples = [stack(code.at("main", "# call suppress"), code.at("suppress", "# suppress"), plot), stack(CALL)]
    finding = check(match("callback-bound", {**TRAINING, "other": 0.1}, samples=samples), "callback-bound")
    assert (finding.cause, finding.culprit.function) == ("plotting", "suppress")


@pytest.mark.parametrize(("state", "cause"), [("model.state_dict()", "checkpoint"), ("describe(model)", "logging")])
def test_a_callback_that_compresses_the_models_state_is_a_checkpoint(tmp_path, state, cause):
    """Most of its time is in the compression, which says nothing of what is compressed."""
    text = f"""
    def main():
        for batch in loader:
            history.save(model)  # save

    class History:
        def save(self, model):
            state = {state}
            file.write(state)  # write
    """
    code = Source(tmp_path / "train.py", text)
    samples = [stack(code.at("main", "# save"), code.at("save", "# write"), lib("numpy/core.py", "compress"))]
    finding = check(match("callback-bound", {**TRAINING, "other": 0.1}, samples=samples), "callback-bound")
    assert (finding.cause, finding.culprit.function) == (cause, "History.save")


def test_host_bound_by_code_after_the_model(code):
    samples = [
        stack(code.at("main", "# call suppress"), code.at("suppress", "# suppress"), count=80),
        stack(CALL, count=20),
    ]
    sites = [code.site("~forward", "main", "# model")]
    finding = check(match("host-bound", {"forward": 0.02, "other": 0.08}, samples=samples, sites=sites), "host-bound")
    assert (finding.cause, finding.culprit.function) == ("postprocess", "suppress")
    assert finding.headroom == pytest.approx(5, rel=0.1)


@pytest.mark.parametrize("idle", [0.0, 0.02])
def test_what_is_done_before_the_model_is_no_matter_of_a_dataset_in_a_server(code, idle):
    sites = [code.site("~data.next", "main", "# ask"), code.site("~forward", "main", "# model")]
    samples = [stack(code.at("main", "# ask"), code.at("pad", "# pad"), count=80), stack(CALL, count=20)]
    phases = {"forward": 0.02, "other": 0.06, "idle": idle} if idle else {"forward": 0.02, "other": 0.08}
    finding = match("host-bound", phases, samples=samples, sites=sites)
    assert finding.cause == "preprocess"
    assert ("dataset" in finding.advice[0]) == (not idle)


def test_host_bound_by_the_garbage_collector():
    finding = check(match("host-bound", {**TRAINING, "other": 0.1}, gc_s=0.09), "host-bound")
    assert finding.cause == "gc"


@pytest.mark.parametrize("seam, cause", [("~sync.item", "item"), ("~sync.cpu", "copy"), ("~sync.nonzero", "shape")])
def test_sync_bound_names_the_call(code, seam, cause):
    finding = check(
        match("sync-bound", {**TRAINING, "sync": 0.1}, sites=[code.site(seam, "suppress", "# suppress")]), "sync-bound"
    )
    assert (finding.cause, finding.culprit.function) == (cause, "suppress")


def test_compile_bound_names_the_line_that_calls_what_is_compiled_again(code):
    phases = {"compile": 0.08, "dispatch": 0.01, "other": 0.01}
    compiled = [CompiledFunction("augment", 1, 0.01), CompiledFunction("train_step", 20, 0.07)]
    sites = [code.site("~jit.augment", "main", "# ask"), code.site("~jit.train_step", "main", "# model")]
    finding = check(match("compile-bound", phases, compiled=compiled, sites=sites), "compile-bound", headroom=3)
    assert (finding.culprit.function, finding.culprit.line) == ("main", sites[1].line)
    assert "train_step was compiled 20 times in the measured steps, 70 ms a step" in finding.evidence


GENERATING = {"forward": 0.09, "other": 0.01}


def generation(**more):
    values = {"sequences": 1, "prompt_tokens": 32, "new_tokens": 65, "prefill_s": 0.01, "decode_s": 0.08}
    return Generation(**{**values, "cached": False, "longest_input": 96, **more})


def test_what_is_computed_again_is_named_at_its_call(code):
    place = code.at("suppress", "# suppress")
    again = Recomputation((place,), there=0.9, seconds=0.06, operators=100, backward_s=0, share=0.5, recurring=0.6)
    samples = [stack(place, count=90), stack(CALL, count=10)]
    found = match("recompute-bound", {"forward": 0.09, "other": 0.01}, recomputation=again, samples=samples)
    finding = check(found, "recompute-bound", headroom=2)
    assert (finding.cause, finding.culprit.function, finding.culprit.line) == ("same-inputs", "suppress", place.line)
    assert (finding.share, finding.culprit.share) == pytest.approx((0.5, 0.45))
    assert finding.evidence == [
        "50 % of the operators' time computes what was computed before, from the same values: 100 operators a step"
    ]


def test_what_is_computed_again_is_in_the_phase_of_most_of_its_samples(code):
    place = code.at("suppress", "# suppress")
    again = Recomputation((place,), there=1, seconds=0.06, operators=1, backward_s=0, share=0.5, recurring=0)
    # Many samples outside of the model, then few, and some within it: all count, not the last alone.
    samples = [stack(place, count=60), stack(CALL, place, count=40), stack(place, lib("x.py", "f", 1), count=1)]
    more = {"recomputation": again, "samples": samples}
    for sites in ((), training_sites(code)):  # with these it is known where host code stands to the model's call
        found = match("recompute-bound", {"forward": 0.05, "other": 0.05}, sites=sites, **more)
        assert found.phases == ("other",)


FROZEN = FrozenPart("trunk", "Trunk", "", 0, share=0.8)
LEARNING = {"forward": 0.06, "backward": 0.03, "optimizer": 0.01}


def test_a_part_that_learns_nothing_is_named_where_it_is_called(code):
    sites = [code.site("~forward", "suppress", "# suppress")]
    finding = check(match("recompute-bound", LEARNING, frozen=FROZEN, sites=sites), "recompute-bound", headroom=1.9)
    assert (finding.cause, finding.culprit.function) == ("frozen-part", "suppress")
    assert finding.share == pytest.approx(0.48)
    assert "`trunk`" in finding.evidence[0]


def test_a_part_that_learns_nothing_leads_only_where_nothing_else_is_worth_fixing():
    alone = host_findings(measurement(LEARNING, frozen=FROZEN))
    assert (alone[0].pattern, alone[0].cause) == ("recompute-bound", "frozen-part")
    beside = host_findings(measurement({**LEARNING, "data_wait": 0.1}, frozen=FROZEN))
    assert beside[0].pattern == "input-bound"


@pytest.mark.parametrize(("recurring", "cause"), [(0.99, "frozen-part"), (0.6, "same-inputs")])
def test_where_all_recurs_in_training_the_part_that_learns_nothing_is_named(code, recurring, cause):
    place = code.at("suppress", "# suppress")
    again = Recomputation((place,), 1, 0.05, 10, backward_s=0, share=0.5, recurring=recurring)
    sites = [code.site("~forward", "suppress", "# suppress")]
    assert match("recompute-bound", LEARNING, frozen=FROZEN, recomputation=again, sites=sites).cause == cause


def test_gradients_that_nothing_uses_are_dropped_before_features_are_kept():
    wasteful = ModelMeasurement(gradients=100, updated=10, idle_parts=("trunk",))
    assert match("recompute-bound", LEARNING, frozen=FROZEN, model=wasteful) is None


def test_what_little_is_computed_again_is_as_long_as_it_takes():
    again = Recomputation(
        (Frame("f", "/x.py", 1),), 1, seconds=0.004, operators=0, backward_s=0.006, share=0.5, recurring=0
    )
    check(match("recompute-bound", recomputation=again), "recompute-bound", headroom=1.11)


def test_a_key_value_cache_that_is_off_is_named_at_the_call_that_generates(code):
    sites = [code.site("~generate", "main", "# model"), code.site("~forward", "main", "# model")]
    model = ModelMeasurement(ops=65 * 10, forwards=65, batch_size=1)
    more = {"kind": "request", "sites": sites, "generation": generation(), "model": model}
    finding = check(match("recompute-bound", GENERATING, **more), "recompute-bound", headroom=2)
    assert (finding.cause, finding.culprit.function, finding.culprit.line) == ("kv-cache", "main", sites[0].line)
    recomputed = 0.08 - 64 * 10 * 12e-6  # of ten operators a call
    assert finding.headroom == pytest.approx(0.1 / (0.1 - recomputed))
    assert any("32 tokens" in line and "up to 96" in line for line in finding.evidence)
    assert any("use_cache" in line for line in finding.advice)


def test_a_cache_that_is_off_comes_before_what_is_said_of_the_model(code):
    sites = [code.site("~generate", "main", "# model"), code.site("~forward", "main", "# model")]
    model = ModelMeasurement(ops=65 * 30, forwards=65, batch_size=1)
    run = measurement(GENERATING, kind="request", sites=sites, generation=generation(), model=model)
    verdict, *others = host_findings(run)
    assert verdict.pattern == "recompute-bound"
    assert "overhead-bound" in {finding.pattern for finding in others}


@pytest.mark.parametrize(
    "more, ops",
    [({"cached": True}, 10), ({"new_tokens": 1, "decode_s": 0.0}, 10), ({}, 120)],
    ids=["on", "one", "tiny"],
)
def test_a_cache_that_is_on_or_would_bring_nothing_is_not_blamed(more, ops):
    model = ModelMeasurement(ops=65 * ops, forwards=65)
    assert match("recompute-bound", GENERATING, kind="request", generation=generation(**more), model=model) is None


@pytest.mark.parametrize("sequences, cause", [(1, "batching"), (16, "small-ops")])
def test_generating_for_one_prompt_at_a_time_wastes_calls_and_a_call_for_each_token_is_none(sequences, cause):
    mean = generation(sequences=sequences, cached=True)
    model = ModelMeasurement(ops=65 * 100, forwards=65, batch_size=sequences)
    finding = check(match("overhead-bound", GENERATING, kind="request", generation=mean, model=model), "overhead-bound")
    assert finding.cause == cause
    assert any("many prompts" in line for line in finding.advice) == (cause == "batching")


def test_compile_bound_names_the_line_that_calls_a_compiled_model(code):
    phases = {"compile": 0.08, "forward": 0.02}
    compiled = [CompiledFunction("a graph of torch.compile", 40, 0.08)]
    finding = check(match("compile-bound", phases, compiled=compiled, sites=training_sites(code)), "compile-bound")
    assert finding.culprit.line == code.line("# model")


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


def test_several_environments_that_are_stepped_in_turn_are_not_one_at_a_time(code):
    phases = {"env": 0.03, "forward": 0.09}
    finding = match("environment-bound", phases, kind="env", envs=1, observations=4)
    assert (finding.cause, finding.share) == ("env", pytest.approx(0.25))


def test_hardly_any_time_in_the_environment_is_no_verdict(code):
    """What it takes to act is then the program's own Python or its small operators, and says so."""
    acting = stack(code.at("main", "# model"), count=60)
    samples = [acting, stack(code.at("main", "# model"), CALL, count=40)]
    measured = measurement(
        {"env": 0.005, "forward": 0.04, "other": 0.055},
        kind="env",
        samples=samples,
        sites=[code.site("~env.step", "main", "# ask"), code.site("~forward", "main", "# model")],
    )
    verdict, *others = host_findings(measured)
    assert verdict.pattern == "host-bound"
    assert "environment-bound" in [finding.pattern for finding in others]


def test_a_program_without_environments_is_not_environment_bound():
    assert match("environment-bound") is None
