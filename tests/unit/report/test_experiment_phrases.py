"""The phrases of a study, and its section of the page."""

import re

import pytest
from changes import changed

from unstall.records import report as r
from unstall.records.experiments import NotMeasured
from unstall.report import experiment_phrases
from unstall.report.html import experiments


def trial(**more):
    return r.ReportedExperiment(**{"name": "decode", "intervention": "free", "ratio": 2.0, "ci95": (1.9, 2.1)} | more)


def test_what_is_not_known_is_left_out():
    assert experiment_phrases.summary(r.Study(base_s=0.05)) == [("Sandbox", "the program was started once")]


def test_what_is_known_is_told():
    made = r.Study(
        base_s=0.05,
        elasticity_sum=0.97,
        elasticity_ci95=(0.9, 1.04),
        elasticity_says="complete",
        waiting_s=0.02,
        taken_s=-0.001,
        sandbox="an overlay",
        runs=3,
    )
    told = dict(experiment_phrases.summary(made))
    assert told["Sum"] == "elasticities sum to 0.97 (0.9 to 1.04): complete"
    assert (
        told["Data"] == "of 50 ms a step, 20 ms is waiting for data, 0 s is lost because loader workers take the cores"
    )
    assert told["Sandbox"] == "an overlay; the program was started 3 times"


@pytest.mark.parametrize(
    "interval, words",
    [((1.9, 2.1), "1.9 to 2.1"), ((0.1, 1e6), "unknown"), ((float("nan"), 2.0), "unknown"), (None, "")],
)
def test_an_interval_that_is_open_tells_nothing(interval, words):
    assert experiment_phrases.between(interval) == words


def test_ceilings_are_relative_to_the_step_of_the_experiments(input_bound):
    assert experiment_phrases.baseline_speed(input_bound) == input_bound.throughput.steps_per_s
    input_bound = changed(input_bound, study=r.Study(base_s=0.1))
    assert experiment_phrases.baseline_speed(input_bound) == pytest.approx(10)


def test_trials_stand_in_their_order_and_an_inconclusive_one_has_no_dot(input_bound):
    input_bound = changed(
        input_bound, experiments=[trial(name="slow"), trial(name="fast", ratio=3.0, conclusive=False, notes=["noisy"])]
    )
    section = experiments.experiments(input_bound)
    assert section.index("</small>slow") < section.index("</small>fast")
    assert section.count(" dot") == 1 and "inconclusive" in section and "fast: noisy" in section


def test_a_study_without_any_result_says_why(input_bound):
    failure = NotMeasured(name="cached", intervention="cached", why="no loader")
    told = r.Study(base_s=0.1, failures=[failure], untried=["gc off"])
    input_bound = changed(input_bound, experiments=[], study=told)
    section = experiments.experiments(input_bound)
    assert "cached: no loader" in section and "gc off" in section


def test_one_long_bar_does_not_make_the_others_vanish(input_bound):
    input_bound = changed(input_bound, study=r.Study(base_s=0.1))
    input_bound = changed(
        input_bound,
        ceilings=[
            r.Ceiling(component="without data", steps_per_s=1e5, known_by="measured"),
            r.Ceiling(component="without decode", steps_per_s=20.0, known_by="measured", ci95=(18.0, 22.0), gap=0.5),
        ],
    )
    section = experiments.ceilings(input_bound)
    assert re.findall(r'class="w-(\d+) gain( cut)?"', section) == [("1000", " cut"), ("250", "")]
    assert 'class="x-225 w-50 range"' in section
