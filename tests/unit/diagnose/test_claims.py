"""Ceilings and expected gains: what makes their intervals wide, and what bounds them."""

from __future__ import annotations

import msgspec
import pytest
from factory import BACKWARD, CALL, FETCH, NEXT, lib, measurement, stack
from hypothesis import given
from hypothesis import strategies as st
from patterncase import host_findings

from unstall.benchmark.warm_caches import share_left
from unstall.diagnose import claims
from unstall.diagnose.claims import Interval
from unstall.diagnose.patterns.callback_bound import PATTERN as CALLBACK_BOUND
from unstall.diagnose.patterns.input_bound import PATTERN as INPUT_BOUND
from unstall.records.measurements import LoaderMeasurement, MemoryMeasurement
from unstall.records.model import ModelMeasurement
from unstall.threshold import Range

MODEL = ModelMeasurement(threads=4)


def first(phases, **more):
    return host_findings(measurement(phases, **{"samples": [stack(CALL, count=500)], "model": MODEL, **more}))[0]


def width(speedup):
    return speedup.high / speedup.low


LOGGING = {"callback": 0.06, "forward": 0.02, "backward": 0.02}


def ceiling(alone, calibration, step_s=0.1, refetch_s=None):
    """Of a component beside the model: what is left runs on the caches that it took."""
    return claims.calibrated(alone / share_left(step_s, step_s / alone, refetch_s), calibration)


def test_a_timed_component_has_a_ceiling_and_a_gain_below_it():
    finding = first(LOGGING)
    expected = ceiling(2.5, CALLBACK_BOUND.calibration[0][2].value)
    assert finding.ceiling.value == finding.headroom == pytest.approx(expected)
    assert finding.ceiling.known_by == "estimated"
    assert finding.ceiling.low < expected < finding.ceiling.high
    assert finding.expected_gain.remedy == dict(CALLBACK_BOUND.usual_remedies)[None].name
    assert 1 < finding.expected_gain.value < finding.ceiling.value


def test_where_memory_is_dear_the_rest_gains_more_by_the_caches_that_are_free():
    calibration = CALLBACK_BOUND.calibration[0][2].value
    short = {"callback": 0.009, "forward": 0.0005, "backward": 0.0005}
    dear = first(short, refetch_s=250e-9)
    assert dear.ceiling.value == pytest.approx(ceiling(10.0, calibration, 0.01, 250e-9))
    assert dear.ceiling.value > first(short, refetch_s=20e-9).ceiling.value
    forward = {"forward": 0.009, "backward": 0.0005, "callback": 0.0005}
    assert first(forward, refetch_s=250e-9).ceiling == first(forward).ceiling


def test_the_batches_of_workers_take_no_caches_of_the_main_threads():
    phases = {"data_wait": 0.009, "forward": 0.0005, "backward": 0.0005}
    loaders = [LoaderMeasurement(workers=workers, batches_per_step=1.0, service_s=0.009) for workers in (0, 1)]
    alone, worker = (
        [first(phases, loader=loader, refetch_s=refetch_s).ceiling for refetch_s in (20e-9, 250e-9)]
        for loader in loaders
    )
    assert alone[0].value < alone[1].value
    assert worker[0] == worker[1]


@given(st.floats(0.001, 0.999), st.integers(0, 100_000))
def test_chance_holds_the_share_and_shrinks_with_the_samples(rest, samples):
    low, high = claims.by_chance(1 / rest, samples)
    assert low <= 1 / rest * 1.0001 and high >= 1 / rest * 0.9999
    wider = claims.by_chance(1 / rest, samples // 10)
    assert wider[1] / wider[0] >= high / low * 0.9999


def test_the_interval_of_a_sampled_share_explodes_near_one():
    moderate, extreme = claims.by_chance(2.0, 100), claims.by_chance(100.0, 100)
    assert moderate[1] / moderate[0] < 2
    assert extreme[1] / extreme[0] > 10


def test_a_share_that_few_samples_show_has_a_wider_interval(code):
    phases = {"other": 0.06, "forward": 0.02, "backward": 0.02}
    plot = (code.at("suppress", "# suppress"), lib("matplotlib/figure.py", "savefig"))
    many, few = (first(phases, samples=[stack(*plot, count=6 * n), stack(CALL, count=4 * n)]) for n in (500, 10))
    assert many.pattern == few.pattern == "callback-bound"
    assert width(few.ceiling) > width(many.ceiling)


def test_steps_that_vary_widen_the_interval():
    assert width(first(LOGGING, spread=0.1).ceiling) > width(first(LOGGING, spread=0.001).ceiling)


def test_code_that_timers_tell_needs_no_samples(code):
    phases = {"other": 0.06, "forward": 0.02, "backward": 0.02}
    own = code.at("suppress", "# suppress")
    many, few = (
        first(phases, samples=[stack(own, count=6 * n), stack(CALL, count=2 * n), stack(BACKWARD, count=2 * n)])
        for n in (500, 10)
    )
    assert many.pattern == few.pattern == "host-bound"
    assert few.ceiling.high == pytest.approx(many.ceiling.high)


def test_waiting_for_cores_that_its_own_workers_hold_raises_the_upper_end_only():
    quiet, busy = first(LOGGING, run_delay=0.5), first(LOGGING, run_delay=0.5, worker_cpu_s=0.05)
    assert busy.ceiling.high > quiet.ceiling.high
    assert busy.ceiling.low == quiet.ceiling.low


def test_workers_that_compete_for_the_cores_may_hide_several_times_the_estimate():
    phases = {"data_wait": 0.009, "forward": 0.03, "backward": 0.056, "optimizer": 0.005}
    loader = LoaderMeasurement(workers=2, batch_size=32, batches_per_step=1.0, service_s=0.18, service_cpu_s=0.11)
    shared = {"loader": loader, "cores": 2.0, "main_cpu_s": 0.04, "worker_cpu_s": 0.15}
    finding = first(phases, **shared, model=ModelMeasurement(threads=2))
    assert finding.pattern == "input-bound"
    assert finding.ceiling.value == pytest.approx(0.1 / 0.048, rel=0.01)  # four threads on two cores
    assert finding.ceiling.low < 1.3 and finding.ceiling.confidence == "low"
    quickest = {"data_wait": 0.001, "forward": 0.003, "backward": 0.005, "optimizer": 0.001}
    teams = first(phases, **shared, model=ModelMeasurement(threads=2), unhindered_s=quickest)
    assert teams.ceiling.value == pytest.approx(0.1 / 0.009, rel=0.01)  # as in the quickest steps


def test_what_is_not_the_culprits_own_stays(code):
    """A quarter of the wait is torch's, which cuts and collates the samples: without the culprit, it is still there."""
    phases = {"data_wait": 0.08, "forward": 0.01, "backward": 0.01}
    in_fetch = (NEXT, FETCH, code.at("fetch", "# read"))
    waiting = [stack(*in_fetch, count=600), stack(NEXT, FETCH, count=200)]
    found = first(phases, samples=[*waiting, stack(CALL, count=200)], loader=LoaderMeasurement(batch_size=16))
    assert found.pattern == "input-bound" and found.culprit.function == "fetch"
    calibration = claims.calibration_of(found, INPUT_BOUND, "timed").value
    assert found.ceiling.value == pytest.approx(ceiling(1 / 0.4, calibration))
    alone = first(phases, samples=[stack(*in_fetch, count=800), stack(CALL, count=200)], loader=LoaderMeasurement())
    assert alone.ceiling.value == pytest.approx(ceiling(1 / 0.2, calibration))


@given(st.floats(1, 1000), st.floats(0, 1))
def test_a_part_of_a_component_has_a_ceiling_between_nothing_and_the_components(of, part):
    component = Interval(of, of, of)
    value, low, high = claims.without(component, Interval(part, 0.9 * part, min(1.0, 1.1 * part)))
    assert 1 <= low <= value * 1.0001 and value <= high * 1.0001 and high <= of * 1.0001
    assert claims.without(component, Interval(1.0, 1.0, 1.0)) == pytest.approx(component)


def test_a_gain_that_is_estimated_is_never_a_single_figure():
    finding = first(LOGGING, spread=0.0)
    assert finding.expected_gain.known_by == "estimated"
    assert finding.expected_gain.confidence == "low"
    measured = claims.measured(finding, 3.0, 2.9, 3.1)
    assert (measured.ceiling.confidence, measured.expected_gain.confidence) == ("high", "low")


def test_a_leak_promises_nothing():
    growing = MemoryMeasurement(rss_by_step=[(float(n), 5e8 + 2e6 * n) for n in range(0, 200, 4)])
    finding = first({"forward": 0.03, "backward": 0.06}, memory=growing)
    assert finding.pattern == "memory-growth"
    assert finding.ceiling is None and finding.expected_gain is None


def test_more_workers_gain_what_the_cores_can_hide():
    phases = {"data_wait": 0.1, "forward": 0.05, "backward": 0.05}
    loader = LoaderMeasurement(batch_size=32, batches_per_step=1.0, service_s=0.1, service_cpu_s=0.1)
    alone = first(phases, loader=loader, cores=8.0, main_cpu_s=0.2)
    assert alone.expected_gain.remedy.startswith("num_workers=")
    assert alone.expected_gain.value == pytest.approx(alone.ceiling.value)
    full = first(phases, loader=loader, cores=1.0, main_cpu_s=0.2)
    assert not full.expected_gain.remedy.startswith("num_workers=")


def test_of_two_remedies_the_one_that_leaves_less_is_promised():
    """One more worker on the last half core hides little of a dear transform; a cheaper transform does."""
    loader = LoaderMeasurement(batch_size=32, batches_per_step=1.0, service_s=0.9, service_cpu_s=0.9)
    finding = first({"data_wait": 0.9, "forward": 0.05, "backward": 0.05}, loader=loader, cores=2.0, main_cpu_s=1.0)
    assert not finding.expected_gain.remedy.startswith("num_workers=")
    assert finding.expected_gain.value > 2


@given(
    st.floats(1, 1000),
    st.lists(st.floats(1, 1000), min_size=2, max_size=2),
    st.lists(st.floats(-0.2, 1), min_size=3, max_size=3).map(sorted),
)
def test_a_gain_lies_in_its_interval(value, ends, remains):
    ceiling = Interval(value, min(value, *ends), max(value, *ends))
    gain = claims.after(ceiling, Range(*remains, "of a test"))
    assert 1 <= gain.low <= gain.value * 1.0001 and gain.value <= gain.high * 1.0001


def test_a_remedy_that_leaves_all_gains_nothing_and_one_that_leaves_nothing_gains_the_ceiling():
    ceiling = Interval(4.0, 3.0, 5.0)
    assert claims.after(ceiling, Range(1.0, 1.0, 1.0, "all")) == (1.0, 1.0, 1.0)
    assert claims.after(ceiling, Range(0.0, 0.0, 0.0, "none")) == pytest.approx((4.0, 3.0, 5.0))


def test_what_was_measured_is_taken_as_it_is():
    finding = claims.measured(first(LOGGING), 3.0, 2.8, 3.2)
    assert (finding.headroom, finding.ceiling.low, finding.ceiling.high) == (3.0, 2.8, 3.2)
    assert (finding.ceiling.known_by, finding.ceiling.confidence) == ("measured", "high")
    assert finding.expected_gain.known_by == "estimated"


def test_a_figure_is_never_surer_than_its_finding():
    finding = first(LOGGING, steps=3)
    assert finding.confidence == "low"
    assert finding.ceiling.confidence == "low"


def test_claims_survive_json():
    finding = first(LOGGING)
    assert msgspec.json.decode(msgspec.json.encode(finding), type=type(finding)) == finding


def test_pools_of_threads_that_collide_hide_what_the_model_takes_alone():
    """NumPy's threads still spin after a batch is made, and torch's wait for their cores."""
    phases = {"data_wait": 0.04, "forward": 0.05, "backward": 0.01}
    seen = {"loader": LoaderMeasurement(batch_size=16, batches_per_step=1.0, service_s=0.04, service_cpu_s=0.04)}
    seen |= {"cores": 2.0, "main_cpu_s": 0.19, "unhindered_s": {"data_wait": 0.03, "forward": 0.004, "backward": 0.004}}
    calm = first(phases, **seen)
    calibration = claims.calibration_of(calm, INPUT_BOUND, "timed").value
    assert calm.ceiling.value == pytest.approx(ceiling(0.1 / 0.06, calibration))
    collide = first(phases, **seen, team_delay_s=0.08)
    assert collide.ceiling.value == pytest.approx(0.1 / 0.008) and collide.ceiling.confidence == "low"
    assert any("from each other" in line for line in collide.evidence)


def test_threads_that_collide_are_not_the_loaders_where_nothing_is_loaded():
    """An agent in its environment, say, beside other programs."""
    phases = {"env": 0.04, "forward": 0.02, "backward": 0.03, "optimizer": 0.01}
    unhindered = {"env": 0.03, "forward": 0.004, "backward": 0.004, "optimizer": 0.004}
    delayed = {"cores": 2.0, "main_cpu_s": 0.19, "team_delay_s": 0.08, "unhindered_s": unhindered}
    found = host_findings(measurement(phases, samples=[stack(CALL, count=500)], model=MODEL, **delayed))
    assert "input-bound" not in {finding.pattern for finding in found}


def test_where_others_hold_the_cores_the_lower_end_is_the_step_without_the_wait():
    """What disturbs the model may be theirs: with them gone it is quick, whatever its own loader does."""
    phases = {"data_wait": 0.04, "forward": 0.05, "backward": 0.01}
    seen = {"loader": LoaderMeasurement(batch_size=16, batches_per_step=1.0, service_s=0.04, service_cpu_s=0.04)}
    seen |= {"cores": 4.0, "main_cpu_s": 0.3, "unhindered_s": {"data_wait": 0.03, "forward": 0.004, "backward": 0.004}}
    more, fewer = (first(phases, **seen, team_delay_s=0.04, other_cores=cores) for cores in (3.5, 2.5))
    assert fewer.ceiling.low > 3
    assert more.ceiling.low < 2.5 < 5 < more.ceiling.high
