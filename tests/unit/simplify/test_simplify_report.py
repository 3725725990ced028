"""From the results of the experiments to the report of `unstall simplify`."""

import math

import pytest
from simplify_builders import make_finding, make_first_run, make_measurement, make_report, make_result, result_of

from unstall.records.experiments import Ceiling
from unstall.records.report import Report
from unstall.runs.experiments import parse
from unstall.simplify import plan, simplify_report
from unstall.simplify.experiment import Experiment, ExperimentResult
from unstall.simplify.simplifier import SimplifyResult


def slowed(component, slope, *, noise=0.01, by="spin"):
    """A delay by half, after which the step is so much longer."""
    arm = ({"kind": "delay", "name": component, "share": 0.5, "by": by},)
    experiment = Experiment(f"{component} +50%", "delay", arm=arm, component=component, share=0.5)
    return make_result(experiment, 1.5**-slope, noise=noise)


def test_a_delay_of_one_rank_is_no_part_of_the_sum():
    (on_rank,) = parse([], ["backward@1=+50%"], [])
    results = [slowed("forward", 0.3), slowed("backward", 0.6), make_result(on_rank, 1.5**-0.5)]
    report = simplified(*results)
    assert report.study.elasticity_sum == pytest.approx(0.9, abs=0.02)
    assert report.experiments[2].elasticity == pytest.approx(0.5, abs=0.02)


def simplified(*results, measurement=None, **more):
    report = make_report(make_finding("callback-bound", 4.0, "log"))
    measurement = measurement or make_measurement()
    return simplify_report.make_report(
        SimplifyResult(make_first_run(report, measurement), list(results), **more), "overlay", ["a note"]
    )


def test_a_report_is_made_and_can_be_read_back():
    failed = ExperimentResult(Experiment("without x", "stub"), failure="it is a generator")
    report = simplified(result_of("log", 4.0), failed, runs=3)
    again = Report.from_json(report.to_json())
    assert again.kind == "simplify" and again.run.notes == ["a note"] and again.study.sandbox == "overlay"
    assert [one.name for one in again.experiments] == ["without log"] and again.experiments[0].segments == 20
    assert again.study.failures[0].why == "it is a generator" and again.study.runs == 3
    assert again.verdict.headroom_known_by == "measured"


def test_a_program_without_a_loop_has_its_first_report():
    report = make_report(make_finding("healthy"))
    found = simplify_report.make_report(SimplifyResult(make_first_run(report)), "overlay", ["it said no"])
    assert found.kind == "simplify" and found.study is None and found.run.notes == ["it said no"]
    assert report.run.notes == []


def test_ceilings_are_steps_a_second_without_a_component():
    ceilings = {one.component: one for one in simplified(result_of("log", 4.0)).ceilings}
    assert ceilings["without log"].steps_per_s == pytest.approx(40.0)
    assert ceilings["without log"].gap == pytest.approx(0.75)


def test_what_was_estimated_stays_where_nothing_was_measured():
    estimate = Ceiling(component="data", steps_per_s=99.0, known_by="estimated")
    measurement, report = make_measurement(), make_report(make_finding("healthy"))
    report.ceilings.append(estimate)
    found = simplify_report.make_report(SimplifyResult(make_first_run(report, measurement)), "overlay")
    assert found.ceilings == [estimate]


def test_elasticities_are_slopes_and_sum_up():
    results = [slowed("forward", 0.6), slowed("data", 0.4)]
    assert simplify_report.elasticity(results[0])[0] == pytest.approx(0.6)
    assert simplify_report.elasticity_sum(results)[0] == pytest.approx(1.0)
    assert simplified(*results).study.elasticity_sum == pytest.approx(1.0)


def test_a_slope_of_one_block_is_open_on_both_sides_and_in_numbers():
    forward = slowed("forward", 0.3)
    forward.log_ratios = forward.log_ratios[:1]
    slope, low, high = simplify_report.elasticity(forward)
    assert math.isfinite(low) and math.isfinite(high) and low < slope < high
    total, half = simplify_report.elasticity_sum([forward, slowed("data", 0.6)])
    assert "uncertain" in simplify_report.meaning_of_sum(total, half)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"forward": 0.6, "data": 0.4}, "account for the step"),
        ({"forward": 0.3, "data": 0.2}, "50 % of the step is in none of them"),
        ({"forward": 1.0, "layer": 0.9}, "more than the step"),
    ],
)
def test_what_the_sum_of_elasticities_means(parts, says):
    results = [slowed(name, slope, noise=0.005) for name, slope in parts.items()]
    assert says in simplified(*results).study.elasticity_says


def test_one_elasticity_is_no_sum():
    assert simplified(slowed("forward", 0.6)).study.elasticity_sum is None


def test_a_component_slowed_in_two_ways_counts_once():
    data, forward = [slowed("data", 0.7), slowed("data", 0.1, by="sleep")], slowed("forward", 0.3)
    for results in ([*data, forward], [forward, *reversed(data)]):
        assert simplify_report.elasticity_sum(results)[0] == pytest.approx(1.0)


def test_the_three_arms_split_waiting_from_taken_cores():
    arms = [result_of("data", 4.0, intervention="cached"), result_of(None, 0.5, intervention="placebo")]
    split = simplify_report.waiting_split(0.4, arms)
    assert split.contention_s == pytest.approx(0.1)
    assert split.waiting_s == pytest.approx(0.2)
    assert simplify_report.waiting_split(0.4, arms[:1]) is None


def test_what_shows_once_the_first_is_gone_is_the_next_bottleneck():
    alone = result_of("save", 1.05)
    behind = Experiment("without save, once without log", "interaction", arm=alone.experiment.arm, base=({},))
    (line,) = simplify_report.deeper_bottlenecks([alone, make_result(behind, 1.6)])
    assert line.endswith("1.60×, 1.05× by itself: the next bottleneck")


def test_blocks_that_others_disturbed_are_told():
    noted = result_of("log", 4.0)
    noted.disturbed_log_ratios = [1.0, 1.2]
    assert simplified(noted).experiments[0].notes == ["2 blocks were disturbed"]


def test_one_comparison_of_a_rank_alone_has_no_interval():
    alone = make_result(plan.setting("ranks", 1), 1.6, blocks=2)
    (note,) = simplified(alone).experiments[0].notes
    assert note.startswith("scaling efficiency 62 %; too few")


def test_one_rank_alone_says_what_share_of_its_speed_a_rank_keeps():
    alone = make_result(plan.setting("ranks", 1), 1.6)
    (note,) = simplified(alone).experiments[0].notes
    assert note.startswith("scaling efficiency 62 % (6")
