"""Recompute-bound: what is computed again."""

from __future__ import annotations

import pytest
from factory import (
    CALL,
    lib,
    measurement,
    stack,
)
from patterncase import check, host_findings, match, training_sites

from unstall.records.measurements import MemoryMeasurement
from unstall.records.model import FrozenPart, ModelMeasurement, Recomputation
from unstall.records.observations import Frame
from unstall.records.run import Generation

GENERATING = {"forward": 0.09, "other": 0.01}

FROZEN = FrozenPart("trunk", "Trunk", "", 0, share=0.8)

LEARNING = {"forward": 0.06, "backward": 0.03, "optimizer": 0.01}


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


@pytest.mark.parametrize(("share", "pattern"), [(0.4, "recompute-bound"), (0.2, "overhead-bound")])
def test_much_that_is_computed_again_comes_before_how_the_model_does_it(code, share, pattern):
    again = Recomputation((code.at("suppress", "# suppress"),), 0.9, 0.06, 100, 0, share=share, recurring=0.6)
    many = ModelMeasurement(ops=20_000, forwards=1, batch_size=1)
    leading, *_ = host_findings(measurement({"forward": 0.1}, recomputation=again, model=many))
    assert leading.pattern == pattern


def test_who_calls_what_is_computed_again_is_told_with_it(code):
    place, above = code.at("suppress", "# suppress"), code.at("pad", "# pad")
    again = Recomputation((place,), there=0.9, seconds=0.06, operators=100, backward_s=0, share=0.5, recurring=0.6)
    samples = [stack(above, place, count=90), stack(CALL, count=10)]
    finding = match("recompute-bound", {"forward": 0.09, "other": 0.01}, recomputation=again, samples=samples)
    assert [caller.function for caller in finding.culprit.callers] == ["pad"]


def test_what_is_computed_again_is_in_the_phase_of_most_of_its_samples(code):
    place = code.at("suppress", "# suppress")
    again = Recomputation((place,), there=1, seconds=0.06, operators=1, backward_s=0, share=0.5, recurring=0)
    # Many samples outside of the model, then few, and some within it: all count, not the last alone.
    samples = [stack(place, count=60), stack(CALL, place, count=40), stack(place, lib("x.py", "f", 1), count=1)]
    more = {"recomputation": again, "samples": samples}
    for sites in ((), training_sites(code)):  # with these it is known where host code stands to the model's call
        found = match("recompute-bound", {"forward": 0.05, "other": 0.05}, sites=sites, **more)
        assert found.phases == ("other",)


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


@pytest.mark.parametrize(("share", "pattern"), [(0.9, "recompute-bound"), (0.2, "compute-bound")])
def test_most_of_a_model_that_learns_nothing_comes_before_how_fast_it_is_computed(share, pattern):
    """Of a machine that is faster the same arithmetic is a smaller part of its peak."""
    frozen = FrozenPart("trunk", "Trunk", "", 0, share=share)
    slow = ModelMeasurement(threads=4, dtype="torch.float32", flops=1e9, peak_flops=1e11, flops_coverage=1.0)
    first, *_ = host_findings(measurement({"forward": 0.09, "backward": 0.01}, frozen=frozen, model=slow))
    assert first.pattern == pattern


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


HOOK = (lib("torch/autograd/graph.py", "_engine_run_backward"), lib("torch/utils/checkpoint.py", "unpack_hook"))
REENTRANT = (lib("torch/autograd/graph.py", "_engine_run_backward"), lib("torch/utils/checkpoint.py", "backward"))
ENGINE = lib("torch/autograd/__init__.py", "backward")


def checkpointed(code, *frames, memory=None):
    """A step, three tenths of whose samples end with these frames and the model's."""
    training, block = code.at("main", "# backward"), code.at("suppress", "# suppress")
    samples = [stack(training, ENGINE, *frames, CALL, block, count=300), stack(training, ENGINE, count=700)]
    more = {"memory": memory} if memory is not None else {}
    return match("recompute-bound", LEARNING, samples=samples, **more)


@pytest.mark.parametrize("frames", [HOOK, REENTRANT])
def test_activation_checkpointing_is_told_with_what_it_costs(code, frames):
    finding = check(checkpointed(code, *frames), "recompute-bound")
    assert (finding.cause, finding.culprit.function) == ("checkpointing", "suppress")
    assert finding.share == pytest.approx(0.3) and finding.headroom == pytest.approx(1 / 0.7)


def test_the_backward_of_a_part_is_not_what_is_computed_again(code):
    assert checkpointed(code, *REENTRANT, ENGINE) is None


def test_how_much_memory_there_is_is_told_with_it(code):
    memory = MemoryMeasurement(rss_peak=2_000_000_000, available=16_000_000_000)
    assert checkpointed(code, *HOOK, memory=memory).evidence[1] == "the run takes 2 GB at most, of 16 GB"


def test_the_library_of_a_checkpointed_layer_is_not_asked_to_change(code):
    layer = lib("transformers/models/gpt2/modeling_gpt2.py", "forward")
    samples = [stack(code.at("main", "# backward"), ENGINE, *HOOK, CALL, layer, count=500)]
    leading, *_ = host_findings(measurement(LEARNING, samples=samples))
    assert (leading.cause, leading.culprit.package) == ("checkpointing", "transformers")
    assert not any("report it there" in line for line in leading.advice)
