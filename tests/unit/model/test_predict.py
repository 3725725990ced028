from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines import pipeline

from unstall.model import Changes, elasticities, predict
from unstall.model.predict import server_times

BODY = 0.012


def measured(made):
    """The pipeline as if its own simulation had been recorded."""
    return replace(made, measured_s=predict(replace(made, measured_s=1.0)).limit_s)


def test_nothing_changed_is_what_was_recorded():
    found = predict(pipeline(measured_s=0.5, spread=0.01))
    assert found.step_s == pytest.approx(0.5) and found.speedup == pytest.approx(1)
    assert found.low < 0.5 < found.high


@pytest.mark.parametrize("workers, expected", [(0, 0.02 + BODY), (1, 0.02), (2, BODY), (8, BODY)])
def test_workers_where_cores_are_plenty(workers, expected):
    found = predict(pipeline(workers=1, measured_s=0.02), Changes(workers=workers))
    assert found.step_s == pytest.approx(expected, rel=1e-6)
    assert found.limit_s == pytest.approx(expected, rel=1e-6)


def test_the_law_of_the_cores():
    """20 ms of loader and 12 ms of body on two cores: no number of workers brings a step below 16 ms."""
    found = predict(pipeline(workers=1, cores=2.0, measured_s=0.02), Changes(workers=8))
    assert found.step_s == pytest.approx(0.016, rel=0.02)
    assert found.bottleneck == "cores" and found.utilisation["cores"] == pytest.approx(1, abs=0.02)


def test_waiting_needs_no_core_so_workers_help():
    found = predict(pipeline(service=0.0, wait=0.08, workers=1, cores=1.0, measured_s=0.08), Changes(workers=8))
    assert found.step_s == pytest.approx(BODY, rel=0.02)


def test_hidden_work_shrinks_too():
    """Two workers of 40 ms, body 8: workers made twice as fast give 10 ms, not what Amdahl says of the wait."""
    before = pipeline(service=0.04, body={"forward": 0.008}, workers=2, measured_s=0.02)
    assert predict(before, Changes(scales={"data": 0.5})).step_s == pytest.approx(0.010, rel=0.01)


def test_a_callback_aside_is_hidden():
    before = pipeline(service=0.001, body={"forward": 0.01, "callback": 0.008}, measured_s=0.018)
    found = predict(before, Changes(aside=frozenset({"callback"})))
    assert found.step_s == pytest.approx(0.01, rel=0.01)
    assert found.high >= 0.018 * 0.99, "a callback in Python may not overlap at all"
    assert found.utilisation["thread aside"] == pytest.approx(0.8, abs=0.02)


def test_a_device_that_the_step_does_not_wait_for():
    before = pipeline(body={"forward": 0.01}, service=0.001, device_s=0.03, on_device=True, measured_s=0.03)
    assert predict(before).limit_s == pytest.approx(0.03)
    assert predict(before).bottleneck == "device"
    waits = replace(before, layout=replace(before.layout, syncs=True))
    assert predict(waits, Changes(scales={"device": 0.0})).step_s == pytest.approx(0.01, rel=0.01)


def test_short_epochs_pay_for_their_beginning():
    before = pipeline(service=0.05, body={"forward": 0.01}, workers=4, epoch=10, epoch_open_s=0.2, measured_s=1.0)
    kept = predict(before, Changes(persistent=True))
    assert kept.speedup > 1.5


def test_many_batches_in_a_fraction_of_a_second():
    found = predict(pipeline(workers=4, cores=2.0, measured_s=0.02), Changes(workers=8))
    assert found.low <= found.step_s <= found.high


def test_the_interval_is_wider_for_a_change_that_does_more():
    before = pipeline(service=0.05, measured_s=0.05)
    little, much = (predict(before, Changes(scales={"data": factor})) for factor in (0.9, 0.4))
    assert much.high / much.step_s > little.high / little.step_s > 1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 4), st.floats(1, 8), st.integers(0, 2**31), st.integers(1, 4))
def test_elasticities_sum_to_one(workers, cores, seed, per_step):
    random = np.random.default_rng(seed)
    made = pipeline(workers=workers, cores=cores, batches_per_step=float(per_step), ship_s=1e-4, take_s=1e-4)
    made = replace(
        made,
        compute=random.exponential(0.005, made.compute.shape),
        wait=random.exponential(0.002, made.wait.shape),
        service=random.exponential(0.01, made.service.shape),
        measured_s=0.02,
    )
    # What is left over is the curvature, where another server takes over within a nudge.
    assert sum(elasticities(made).values()) == pytest.approx(1, abs=0.05)


def test_of_a_corner_each_side_gets_half():
    """A worker that makes batches just as fast as the loop takes them."""
    made = pipeline(service=0.02, body={"other": 0.02}, workers=1, cores=4.0, measured_s=0.02)
    found = elasticities(made)
    assert found["data"] == pytest.approx(0.5, abs=0.05) and found["other"] == pytest.approx(0.5, abs=0.05)


def test_elasticities_tell_slack_from_the_critical_path():
    found = elasticities(pipeline(service=0.05, workers=1, measured_s=0.05))
    assert found["data"] == pytest.approx(1, abs=0.01)
    assert abs(found.get("forward", 0.0)) < 0.01


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 5), st.floats(0.001, 0.05), st.floats(0.001, 0.05), st.floats(1, 8))
def test_without_chance_the_limit_is_met(workers, service, body, cores):
    """Constant times and enough prefetch: the slowest server sets the pace, unless cores are short in turns."""
    made = pipeline(service, body={"other": body}, workers=workers, cores=cores, prefetch=4, measured_s=1.0)
    limit = max(server_times(made).values())
    simulated = made.measured_s / predict(made).limit_s * limit  # seconds, as the simulation has them
    assert simulated >= limit * 0.99  # what was made before the first counted step
    if workers + 1 <= cores:
        assert simulated == pytest.approx(limit, rel=0.02)


def test_a_step_of_nothing_is_no_error():
    free = dict.fromkeys(["forward", "backward", "callback", "data"], 0.0)
    found = predict(pipeline(measured_s=0.02), Changes(scales=free))
    assert found.step_s == 0 and found.speedup == float("inf") and found.speedup_low == float("inf")
