"""What is healthy, what is merely not understood, and what comes before either."""

from __future__ import annotations

import msgspec
import pytest
from factory import CALL, measurement, stack
from patterncase import TRAINING, host_findings, training_sites

from unstall.records.measurements import LoaderMeasurement
from unstall.records.model import DroppedGradients, ModelMeasurement, ModuleMeasurement, Recomputation

COMPUTING = ModelMeasurement(
    threads=4, dtype="torch.float32", batch_size=32, forwards=1, flops=5e9, peak_flops=1e11, flops_coverage=1.0
)
"""At half of the machine's peak in a training step of a tenth of a second."""
IN_FORWARD = [stack(CALL, count=500)]


def verdict(phases, model=COMPUTING, *, samples=IN_FORWARD, **more):
    return host_findings(measurement(phases, model=model, samples=samples, **more))[0]


def slower(flops, **more):
    return msgspec.structs.replace(COMPUTING, flops=flops, **more)


def test_a_step_of_arithmetic_at_a_good_rate_is_healthy():
    finding = verdict(TRAINING)
    assert (finding.pattern, finding.confidence) == ("healthy", "high")
    assert "51 % of this machine's peak" in finding.evidence[1]
    assert finding.ceiling is None and finding.expected_gain is None


def test_rollouts_that_were_taken_for_validation_are_not_healthy(code):
    rollouts = [stack(code.at("suppress", "# suppress"), count=320), stack(CALL, count=180)]
    finding = verdict(
        {"forward": 0.01, "backward": 0.02, "optimizer": 0.005, "validation": 0.06},
        slower(1e7, ops=140, batch_size=64, forwards=1),
        samples=rollouts,
        sites=training_sites(code),
    )
    assert finding.pattern != "healthy"
    assert finding.phases == ("validation",)
    assert "63 %" in finding.evidence[0]


def test_beside_a_model_that_does_well_it_is_the_rest_that_is_to_be_looked_at():
    """As of a diffusion model that draws pictures after each epoch: a quarter of its time, and no stall."""
    phases = {"forward": 0.03, "backward": 0.04, "optimizer": 0.004, "validation": 0.026}
    finding = verdict(phases)
    assert (finding.pattern, finding.phases) == ("unexplained", ("validation",))
    assert "is validation, the largest part besides the model's math" in finding.evidence[0]
    assert verdict(phases, slower(1e8)).phases != ("validation",)


def test_gradients_that_nothing_uses_are_not_healthy():
    finding = verdict(TRAINING, msgspec.structs.replace(COMPUTING, gradients=1000, updated=100))
    assert (finding.pattern, finding.cause) == ("compute-bound", "gradients")
    few = verdict(TRAINING, msgspec.structs.replace(COMPUTING, gradients=1000, updated=900))
    assert few.pattern == "healthy"


def test_gradients_that_are_dropped_are_not_healthy():
    dropped = DroppedGradients((), "Generator", 0.6)
    finding = verdict(TRAINING, msgspec.structs.replace(COMPUTING, dropped=dropped))
    assert (finding.pattern, finding.cause) == ("compute-bound", "gradients")
    assert any("gradients of Generator that are dropped" in line for line in finding.evidence)


def test_what_is_computed_again_is_not_healthy(code):
    place = code.at("suppress", "# suppress")
    again = Recomputation((place,), 1.0, 0.04, 12, 0.0, share=0.4, recurring=0.5)
    finding = verdict(TRAINING, COMPUTING, recomputation=again)
    assert (finding.pattern, finding.cause) == ("recompute-bound", "same-inputs")
    few, nearly_all = (msgspec.structs.replace(again, **other) for other in ({"share": 0.1}, {"recurring": 0.99}))
    assert verdict(TRAINING, COMPUTING, recomputation=few).pattern == "healthy"
    assert verdict(TRAINING, COMPUTING, recomputation=nearly_all).pattern == "recompute-bound"
    once_a_step = verdict(TRAINING, COMPUTING, recomputation=nearly_all)
    assert once_a_step.advice[0] == "compute it once in a step, and use the result wherever it is needed"
    same_data = verdict({"forward": 0.1}, COMPUTING, recomputation=nearly_all, kind="forward")
    assert same_data.pattern == "healthy"  # as a benchmark of inference


def test_a_batch_of_padding_is_not_healthy():
    finding = verdict(TRAINING, msgspec.structs.replace(COMPUTING, padding=0.5))
    assert (finding.pattern, finding.cause) == ("compute-bound", "padding")
    assert verdict(TRAINING, msgspec.structs.replace(COMPUTING, padding=0.1)).pattern == "healthy"


def test_a_poor_rate_is_not_healthy():
    finding = verdict(TRAINING, slower(2.25e9))
    assert finding.pattern == "unexplained"
    assert any("23 % of this machine's peak" in line for line in finding.evidence)


@pytest.mark.parametrize(
    "model", [ModelMeasurement(threads=4), slower(None), slower(5e9, peak_flops=None), slower(5e9, flops_coverage=0.2)]
)
def test_a_rate_that_is_not_known_is_no_evidence_of_health(model):
    finding = verdict(TRAINING, model)
    assert finding.pattern == "unexplained"
    assert any("not known" in line for line in finding.evidence)


def test_single_observations_are_not_healthy():
    finding = verdict(TRAINING, slower(5e9, batch_size=1, forwards=16, ops=100))
    assert finding.pattern == "unexplained"
    assert any("single observations" in line for line in finding.evidence)


def test_a_recurrent_model_computes_at_a_lower_rate_and_is_healthy():
    layers = [ModuleMeasurement(f"gru{n}", "GRU", "rnn.py", 1, 1.0, 0.02, 0.02, 0) for n in range(3)]
    assert verdict(TRAINING, slower(2e9), modules=layers).pattern == "healthy"
    assert verdict(TRAINING, slower(2e9)).pattern != "healthy"


@pytest.mark.parametrize(
    ("flops", "written", "kind", "is_healthy"),
    [
        (2e9, 1e8, "Conv2d", True),  # 20 % of the peak, and a tenth of the time to write it
        (2e9, 1e8, "Linear", False),
        (2e9, 1e7, "Conv2d", False),
        (1e9, 9e8, "Conv2d", False),  # mostly writes
    ],
)
def test_what_convolutions_write_is_time_well_spent_too(flops, written, kind, is_healthy):
    layers = [ModuleMeasurement(f"layer{n}", kind, "net.py", 1, 1.0, 0.01, 0.01, 0) for n in range(2)]
    found = verdict(TRAINING, slower(flops, written_bytes=written), modules=layers)
    assert (found.pattern == "healthy") == is_healthy


def test_the_unexplained_names_the_largest_phase_and_its_functions(code):
    samples = [stack(CALL, code.at("suppress", "# suppress"), count=400), stack(CALL, count=100)]
    finding = verdict(TRAINING, ModelMeasurement(threads=4), samples=samples)
    assert (finding.pattern, finding.phases) == ("unexplained", ("backward",))
    assert finding.headroom == 1.0 and finding.ceiling is None
    only_forward = verdict({"forward": 0.1}, ModelMeasurement(threads=4), samples=samples)
    assert only_forward.culprit.function == "suppress"
    assert any("suppress" in line for line in only_forward.evidence)
    assert "suppress" in only_forward.advice[0]
    assert not any("nothing to fix" in line for line in only_forward.advice)


def test_threads_are_not_blamed_where_the_loaders_workers_use_the_cores():
    few = slower(5e9, threads=1)
    assert verdict(TRAINING, few, cores=3.0, main_cpu_s=0.1).cause == "threads"
    busy = {"loader": LoaderMeasurement(workers=2, batches_per_step=1.0), "worker_cpu_s": 0.2}
    assert verdict(TRAINING, few, cores=3.0, main_cpu_s=0.1, **busy).cause != "threads"


def test_a_checkpoint_in_every_step_comes_before_idle_threads():
    few = slower(5e9, threads=1)
    finding = verdict({**TRAINING, "callback": 0.06}, few, cores=2.0, main_cpu_s=0.16)
    assert finding.pattern == "callback-bound"


@pytest.mark.parametrize("ops", [None, 4000.0])
def test_the_largest_part_of_the_model_is_blamed_not_its_forward(code, ops):
    finding = verdict(
        {"forward": 0.019, "backward": 0.033, "optimizer": 0.044, "other": 0.004},
        slower(1e8, ops=ops, batch_size=64),
        sites=training_sites(code),
    )
    assert (finding.cause, finding.culprit.line) == ("optimizer", code.line("# optimizer"))
