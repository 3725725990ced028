"""Overhead-bound: many small operators."""

from __future__ import annotations

import pytest
from factory import (
    CALL,
    Source,
    measurement,
    stack,
)
from patterncase import TRAINING, check, host_findings, match, module, training_sites

from unstall.records.measurements import (
    SeamSite,
)
from unstall.records.model import ModelMeasurement, OperatorLine


@pytest.mark.parametrize(("rate", "is_overhead"), [(0.15, True), (0.3, False)])
def test_operators_as_short_as_a_call_are_overhead_unless_they_compute_as_layers_do(rate, is_overhead):
    ops = sum(TRAINING[phase] for phase in ("forward", "backward", "optimizer") if phase in TRAINING) / 14e-6
    flops = rate * 1e11 * ops * 14e-6
    model = ModelMeasurement(ops=ops, forwards=32, batch_size=1, flops=flops, peak_flops=1e11, threads=4)
    found = match("overhead-bound", model=model)
    assert (found is not None and found.cause == "batching") == is_overhead


def test_overhead_bound_by_many_small_operators(code):
    model = ModelMeasurement(ops=8000, forwards=1, batch_size=32, flops=1e6, peak_flops=1e11, threads=4)
    samples = [stack(code.at("main", "# model"), CALL, code.at("suppress", "# suppress"))]
    finding = check(match("overhead-bound", model=model, samples=samples), "overhead-bound")
    assert (finding.cause, finding.culprit.function) == ("small-ops", "suppress")
    assert any(line.startswith("a step takes 32 samples, ") for line in finding.evidence)
    assert any("64 samples a step, for up to" in line for line in finding.advice)


@pytest.mark.parametrize(("device", "is_overhead"), [("cpu", False), ("cuda:0", True)])
def test_operators_whose_time_is_that_of_writing_their_results_are_not_small(device, is_overhead):
    model = ModelMeasurement(threads=4, ops=4000.0, batch_size=8, written_bytes=3e8, device=device)
    found = match("overhead-bound", model=model, samples=[stack(CALL, count=500)])
    assert (found is not None) == is_overhead


def test_operators_that_take_no_longer_than_a_call_are_small_whatever_some_of_them_write():
    """A loop over pairs of vectors, and an optimizer that writes millions of weights."""
    model = ModelMeasurement(threads=4, ops=15000.0, batch_size=8, written_bytes=3e8)
    assert match("overhead-bound", model=model, samples=[stack(CALL, count=500)]).cause == "small-ops"


def test_small_operators_that_wait_for_a_busy_machine_are_small_still(code):
    """Each takes 0.2 ms on average, and 10 µs in the steps in which the team's threads had their cores."""
    model = ModelMeasurement(ops=500, forwards=1, batch_size=32, flops=1e5, peak_flops=1e11, threads=4)
    samples = [stack(code.at("main", "# model"), CALL, code.at("suppress", "# suppress"))]
    assert match("overhead-bound", model=model, samples=samples) is None
    unhindered = {"forward": 0.003, "backward": 0.0015, "optimizer": 0.0005}
    check(match("overhead-bound", model=model, samples=samples, unhindered_s=unhindered), "overhead-bound")


@pytest.mark.parametrize(("forward_s", "function"), [(0.0005, "suppress"), (0.02, "main")])
def test_small_operators_are_called_by_the_loss_where_forward_has_no_time_for_them(code, forward_s, function):
    """8,000 operators a step, 2,000 of them in forward: in half a millisecond nobody calls so many."""
    model = ModelMeasurement(ops=8000, forwards=1, batch_size=32, flops=1e6, peak_flops=1e11, threads=4)
    samples = [
        stack(code.at("main", "# model"), CALL, count=20),
        stack(code.at("main", "# call suppress"), code.at("suppress", "# suppress"), count=60),
    ]
    phases = {"forward": forward_s, "backward": 0.05, "optimizer": 0.001, "other": 0.03}
    finding = check(
        match("overhead-bound", phases, model=model, samples=samples, unhindered_s={**phases}), "overhead-bound"
    )
    assert (finding.cause, finding.culprit.function) == ("small-ops", function)
    assert (finding.share > 0.9) == (function == "suppress")


@pytest.mark.parametrize(("large_s", "is_overhead"), [(0.08, False), (0.02, True)])
def test_a_few_large_operators_among_many_tiny_ones_are_no_overhead(code, large_s, is_overhead):
    """A convolution over a large map before a recurrent layer, whose steps are operators of their own."""
    model = ModelMeasurement(ops=2500, forwards=1, batch_size=32, flops=1e6, peak_flops=1e11, threads=4)
    lines = [
        OperatorLine((code.at("main", "# model"),), large_s, 0.1, calls=10),
        OperatorLine((code.at("suppress", "# suppress"),), 0.04, 0.1, calls=1200),
    ]
    assert (match("overhead-bound", model=model, operators=lines) is not None) == is_overhead


def test_overhead_bound_by_one_sample_at_a_time(code):
    model = ModelMeasurement(ops=3000, forwards=32, batch_size=1, flops=1e6, peak_flops=1e11, threads=4)
    finding = check(match("overhead-bound", model=model, sites=training_sites(code)), "overhead-bound")
    assert (finding.cause, finding.culprit.line) == ("batching", code.line("# model"))


@pytest.mark.parametrize(
    ("given", "size", "cause"),
    [("state", 32, "small-ops"), ("state", None, "small-ops"), ("item", 32, "batching"), ("state", 1, "batching")],
)
def test_calls_that_wait_for_each_other_cannot_be_one(tmp_path, given, size, cause):
    text = f"def solve(model, state, items):\n    for item in items:\n        state = state + model({given})  # call\n"
    solver = Source(tmp_path / "solver.py", text)
    site = SeamSite("~forward", solver.file, "solve", solver.line("# call"))
    model = ModelMeasurement(ops=3000, forwards=32, batch_size=size, flops=1e6, peak_flops=1e11, threads=4)
    finding = check(match("overhead-bound", model=model, sites=[site]), "overhead-bound")
    assert finding.cause == cause
    (calls,) = (line for line in finding.evidence if "called 32 times" in line)
    assert ("an earlier call" in calls) == (cause == "small-ops")
    assert ("sample" in calls) == (size is not None)


def test_of_the_lines_that_call_the_model_the_one_that_holds_the_time_is_named(code):
    """A program that plays first, and then values what it played one by one: the line of the play was seen first."""
    model = ModelMeasurement(ops=3000, forwards=32, batch_size=1, flops=1e6, peak_flops=1e11, threads=4)
    first, second = (
        SeamSite("~forward", code.file, "main", line) for line in (code.line("# model"), code.line("# call suppress"))
    )
    called = [
        stack(code.at("main", "# model"), CALL, count=9),
        stack(code.at("main", "# call suppress"), CALL, count=40),
    ]
    finding = match("overhead-bound", model=model, sites=[first, second], samples=called)
    assert finding.culprit.line == second.line


@pytest.mark.parametrize("loops_itself", [False, True])
def test_who_hands_a_library_one_sample_after_the_other_is_named(tmp_path, loops_itself):
    """Unless it is the library's own loop that calls the model on each."""
    packages = tmp_path / "site-packages"
    packages.mkdir()
    call = "for x in xs:\n        model(x)  # call" if loops_itself else "return model(xs)  # call"
    library = Source(packages / "pipes.py", f"def forward(xs):\n    {call}\n")
    program = Source(tmp_path / "serve.py", "def main():\n    for x in xs:\n        forward(x)  # item\n")
    above = (program.file, "main", program.line("# item"))
    site = SeamSite("~forward", library.file, "forward", library.line("# call"), callers=(above,))
    model = ModelMeasurement(ops=3000, forwards=32, batch_size=1, flops=1e6, peak_flops=1e11, threads=4)
    finding = check(match("overhead-bound", model=model, sites=[site]), "overhead-bound")
    assert (finding.cause, finding.culprit.function) == ("batching", "forward" if loops_itself else "main")


@pytest.mark.parametrize("model", [{"ops": 20}, {"ops": 8000, "flops": 4e9, "peak_flops": 1e11}, {}])
def test_large_or_efficient_operators_are_no_overhead(model):
    assert match("overhead-bound", model=ModelMeasurement(forwards=1, batch_size=32, **model)) is None


@pytest.mark.parametrize(("rate", "is_overhead"), [(0.05, True), (0.2, False)])
def test_a_recurrent_layer_is_not_told_to_be_one(code, rate, is_overhead):
    """Its steps are operators of their own, which reach less than others, and it is the library's already."""
    layer = [module("gru", "GRU", 0.095, file=code.file)]
    ops = 8000.0
    flops = rate * 1e11 * sum(TRAINING.get(phase, 0.0) for phase in ("forward", "backward", "optimizer"))
    model = ModelMeasurement(threads=4, ops=ops, batch_size=16, flops=flops, peak_flops=1e11, flops_coverage=1.0)
    found = match("overhead-bound", model=model, modules=layer, samples=[stack(CALL, count=500)])
    assert (found is not None) == is_overhead
    if found is not None:
        assert found.cause == "small-ops" and "recurrent" in found.advice[0]
        assert not any("nn.GRU" in line for line in found.advice)


def test_tiny_operators_say_more_than_the_layer_that_they_are_in(code):
    """Both leave a step next to nothing: which comes first is no matter of the letters of their names."""
    layer = [module("gru", "MinimalGRU", 0.095, file=code.file)]
    tiny = ModelMeasurement(threads=4, ops=6000.0, batch_size=16, flops=5e7, peak_flops=1e11, flops_coverage=1.0)
    found = host_findings(measurement(TRAINING, model=tiny, modules=layer, samples=[stack(CALL, count=500)]))
    assert [finding.pattern for finding in found][:2] == ["overhead-bound", "compute-bound"]
    assert min(finding.headroom for finding in found[:2]) > 10
