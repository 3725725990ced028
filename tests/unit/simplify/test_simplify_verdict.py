"""What the experiments make of the verdict."""

import pytest
from changes import changed
from simplify_builders import make_finding, make_report, make_result, result_of

from unstall.records.report import Hotspot
from unstall.records.speedup import ExpectedGain, Speedup
from unstall.simplify import plan, registry, simplify_verdict
from unstall.simplify.simplify_verdict import WaitingSplit


def restate(report, *results, split=None):
    return simplify_verdict.restate(report, list(results), split)


def test_the_headroom_is_measured_where_the_culprit_was_stubbed():
    (first,), disagreements = restate(make_report(make_finding("callback-bound", 4.0, "log")), result_of("log", 4.1))
    assert first.headroom_known_by == "measured"
    assert first.headroom == pytest.approx(4.1)
    assert first.evidence[0].startswith("by experiment")
    assert disagreements == []


def test_an_estimate_that_is_far_off_is_a_disagreement():
    findings, disagreements = restate(make_report(make_finding("callback-bound", 4.0, "log")), result_of("log", 2.0))
    assert findings[0].headroom == pytest.approx(2.0)
    assert "less than its share" in disagreements[0]


def test_contention_is_not_called_compute():
    """Observation blames the model; with cached batches the program is four times as fast."""
    spot = Hotspot(function="Blur.__call__", file="train.py", line=9, share=0.9, where="worker")
    report = make_report(make_finding("compute-bound", 2.0, "Net.forward"), hotspots=[spot])
    findings, disagreements = restate(report, result_of("data", 4.0, intervention="cached"))
    assert findings[0].pattern == "input-bound"
    assert findings[0].culprit.function == "Blur.__call__"
    assert "observation says compute-bound" in disagreements[0]


def test_what_the_model_itself_gives_takes_no_verdict_over():
    report = make_report(make_finding("callback-bound", 1.5, "log"))
    findings, _ = restate(report, result_of("log", 1.5), result_of("backward", 3.0, intervention="backward"))
    assert findings[0].pattern == "callback-bound"


def test_noise_takes_no_verdict_over():
    report = make_report(make_finding("compute-bound", 2.0, "Net.forward"))
    findings, _ = restate(report, result_of("data", 1.5, noise=0.8, intervention="cached"))
    assert findings[0].pattern == "compute-bound"


def test_a_culprit_worth_nothing_gives_way():
    report = make_report(make_finding("host-bound", 2.0, "pack"), make_finding("compute-bound", 1.8, "Net.forward"))
    findings, disagreements = restate(report, result_of("pack", 1.01))
    assert [one.pattern for one in findings] == ["compute-bound", "host-bound"]
    assert disagreements


def test_a_leak_stays_the_verdict():
    report = make_report(make_finding("memory-growth", 1.0, "keep"))
    findings, _ = restate(report, result_of("data", 3.0, intervention="cached"))
    assert findings[0].pattern == "memory-growth"


def test_the_three_arms_are_told_where_the_data_is_blamed():
    split = WaitingSplit(0.4, waiting_s=0.2, contention_s=0.1)
    (first,), _ = restate(make_report(make_finding("input-bound", 4.0)), result_of("data", 4.0), split=split)
    assert "200 ms are waiting for data and 100 ms are lost" in first.evidence[-1]


def test_no_report_is_changed():
    report = make_report(make_finding("compute-bound", 2.0, "Net.forward"))
    before = report.to_json()
    restate(report, result_of("data", 4.0, intervention="cached"), split=WaitingSplit(0.4, 0.2, 0.1))
    assert report.to_json() == before


@pytest.mark.parametrize(
    ("component", "pattern"),
    [("env", "environment-bound"), ("validation", "callback-bound"), ("collectives", "communication-bound"),
     ("checks", "debugging-bound"),
     ("network", "host-bound"), ("some_function", "host-bound")],
)  # fmt: skip
def test_a_kind_of_work_has_its_pattern(component, pattern):
    findings, _ = restate(make_report(make_finding("healthy", 1.0)), result_of(component, 3.0))
    assert findings[0].pattern == pattern and findings[0].advice


def test_the_ceiling_is_measured_with_its_interval_and_the_gain_follows_it():
    (first,), _ = restate(make_report(make_finding("callback-bound", 2.0, "log")), result_of("log", 4.1))
    assert first.ceiling.known_by == "measured"
    assert first.ceiling.low <= first.ceiling.value == first.headroom <= first.ceiling.high
    assert first.expected_gain.known_by == "estimated"
    assert 1 < first.expected_gain.value < first.ceiling.value


def test_of_checks_ceiling_and_gain_are_theirs_and_not_those_of_the_line_where_most_are_made():
    report = make_report(changed(make_finding("debugging-bound", 1.5, "forward"), cause="anomaly-detection"))
    checks = plan.free(registry.components()["checks"])
    (first,), _ = restate(report, result_of("forward", 1.4), make_result(checks, 1.6))
    assert first.pattern == "debugging-bound" and first.ceiling.value == pytest.approx(1.6)
    assert first.expected_gain.known_by == "measured" and first.expected_gain.remedy == checks.name
    assert sum("by experiment" in line for line in first.evidence) == 1


def test_a_verdict_that_takes_over_has_a_measured_ceiling():
    findings, _ = restate(make_report(make_finding("healthy", 1.0)), result_of("env", 3.0))
    assert findings[0].ceiling.value == pytest.approx(3.0) and findings[0].ceiling.known_by == "measured"


def tried(setting, ratio, **more):
    """The result of an experiment with a setting, as the plan makes it."""
    return make_result(plan.setting(*setting), ratio, **more)


@pytest.mark.parametrize(
    ("pattern", "cause", "setting", "remedy"),
    [
        ("compute-bound", "threads", ("threads", 4), "4 threads inside operators"),
        ("compute-bound", "page-faults", ("keep-memory", 1), "keeping freed memory"),
        ("input-bound", "transform", ("workers", 4), "4 workers"),
    ],
)
def test_the_gain_of_a_setting_that_is_the_remedy_is_measured(pattern, cause, setting, remedy):
    finding = changed(make_finding(pattern, 2.0), cause=cause)
    (first,), _ = restate(make_report(finding), tried(setting, 1.6))
    gain = first.expected_gain
    assert (gain.remedy, gain.known_by) == (remedy, "measured")
    assert gain.low < gain.value == pytest.approx(1.6) and gain.high < 1.7
    assert f"{remedy} the program is 1.60× as fast" in first.evidence[0]


def test_the_best_setting_is_the_remedy():
    finding = changed(make_finding("input-bound", 3.0), cause="transform")
    (first,), _ = restate(make_report(finding), *(tried(("workers", n), 1 + n / 10) for n in (1, 4, 2)))
    assert first.expected_gain.remedy == "4 workers"


def test_a_remedy_that_is_expected_to_bring_more_stays():
    gain = ExpectedGain(remedy="a cheaper transform", value=5, low=2, high=9, confidence="low", known_by="estimated")
    finding = changed(make_finding("input-bound", 9.0), cause="transform", expected_gain=gain)
    (first,), _ = restate(make_report(finding), tried(("workers", 2), 1.2))
    assert (first.expected_gain, first.evidence) == (gain, finding.evidence)


def test_a_remedy_that_surely_gains_more_than_is_surely_expected_of_another_is_named():
    gain = ExpectedGain(remedy="a fused operator", value=9, low=1.1, high=60, confidence="low", known_by="estimated")
    finding = changed(make_finding("compute-bound", 60.0), cause="model", expected_gain=gain)
    (first,), _ = restate(make_report(finding), tried(("keep-memory", 1), 2.8), tried(("threads", 1), 0.6))
    assert (first.expected_gain.remedy, first.expected_gain.known_by) == ("keeping freed memory", "measured")
    assert first.evidence[0].startswith("by experiment: keeping freed memory the program is 2.80× as fast")


def test_a_remedy_that_brought_nothing_is_expected_to_bring_nothing():
    gain = ExpectedGain(remedy="all cores for torch", value=2, low=1, high=3, confidence="low", known_by="estimated")
    finding = changed(make_finding("compute-bound", 2.0), cause="threads", expected_gain=gain)
    (first,), _ = restate(make_report(finding), tried(("threads", 4), 0.9))
    assert first.expected_gain.value == first.expected_gain.low == 1.0


@pytest.mark.parametrize(("setting", "noise"), [(("prefetch", 4), 0.01), (("ranks", 1), 0.01), (("threads", 4), 0.8)])
def test_other_settings_and_noise_tell_nothing_of_a_remedy(setting, noise):
    finding = changed(make_finding("compute-bound", 2.0), cause="threads")
    (first,), _ = restate(make_report(finding), tried(setting, 1.5, noise=noise))
    assert first.expected_gain is None


def test_a_measurement_inside_the_stated_interval_is_no_disagreement():
    finding = make_finding("callback-bound", 4.0, "log")
    wide = Speedup(value=4.0, low=1.5, high=9.0, confidence="low", known_by="estimated")
    _, disagreements = restate(make_report(changed(finding, ceiling=wide)), result_of("log", 2.0))
    assert disagreements == []
