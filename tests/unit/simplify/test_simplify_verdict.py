"""What the experiments make of the verdict."""

import math

import pytest

from unstall.records.report import Culprit, Finding, Hotspot, Phase, Report, RunInfo, Study, Throughput, Utilization
from unstall.simplify import conclude, verdict
from unstall.simplify.study import Findings
from unstall.simplify.trial import Outcome, Trial


def finding(pattern, headroom, function=None):
    culprit = Culprit(function=function, file="train.py", line=3, share=0.5) if function else None
    return Finding(
        pattern=pattern,
        headroom=headroom,
        headroom_known_by="estimated",
        confidence="medium",
        evidence=["seen"],
        advice=["do"],
        culprit=culprit,
    )


def report(*findings, hotspots=()):
    run = RunInfo(id="1", command=["train.py"], started="", duration_s=1, steps=9, exit_code=0, environment={})
    return Report(
        kind="run",
        run=run,
        throughput=Throughput(steps_per_s=10.0),
        utilization=Utilization(),
        phases=[Phase(name="forward", share=1.0, mean_s=0.1)],
        verdict=findings[0],
        findings=list(findings),
        hotspots=list(hotspots),
    )


def outcome(component, ratio, *, noise=0.01, intervention="stub", **more):
    made = Outcome(Trial(f"without {component}", intervention, arm=({"kind": component},), component=component, **more))
    made.log_ratios = [math.log(ratio) + noise * sign for sign in (1, -1, 1, -1, 0)]
    made.base_s = [0.1] * 5
    return made


def restate(told, *outcomes):
    return verdict.restate(told, list(outcomes), Study(base_s=0.1))


def test_the_headroom_is_measured_where_the_culprit_was_stubbed():
    (first,), disagreements = restate(report(finding("callback-bound", 4.0, "log")), outcome("log", 4.1))
    assert first.headroom_known_by == "measured"
    assert first.headroom == pytest.approx(4.1)
    assert first.evidence[0].startswith("by experiment")
    assert disagreements == []


def test_an_estimate_that_is_far_off_is_a_disagreement():
    findings, disagreements = restate(report(finding("callback-bound", 4.0, "log")), outcome("log", 2.0))
    assert findings[0].headroom == pytest.approx(2.0)
    assert "less than its share" in disagreements[0]


def test_contention_is_not_called_compute():
    """Observation blames the model; with cached batches the program is four times as fast."""
    spot = Hotspot(function="Blur.__call__", file="train.py", line=9, share=0.9, where="worker")
    told = report(finding("compute-bound", 2.0, "Net.forward"), hotspots=[spot])
    findings, disagreements = restate(told, outcome("data", 4.0, intervention="cached"))
    assert findings[0].pattern == "input-bound"
    assert findings[0].culprit.function == "Blur.__call__"
    assert "observation says compute-bound" in disagreements[0]


def test_what_the_model_itself_gives_takes_no_verdict_over():
    told = report(finding("callback-bound", 1.5, "log"))
    findings, _ = restate(told, outcome("log", 1.5), outcome("backward", 3.0, intervention="backward"))
    assert findings[0].pattern == "callback-bound"


def test_noise_takes_no_verdict_over():
    told = report(finding("compute-bound", 2.0, "Net.forward"))
    findings, _ = restate(told, outcome("data", 1.5, noise=0.8, intervention="cached"))
    assert findings[0].pattern == "compute-bound"


def test_a_culprit_worth_nothing_gives_way():
    told = report(finding("host-bound", 2.0, "pack"), finding("compute-bound", 1.8, "Net.forward"))
    findings, disagreements = restate(told, outcome("pack", 1.01))
    assert [one.pattern for one in findings] == ["compute-bound", "host-bound"]
    assert disagreements


def test_a_leak_stays_the_verdict():
    told = report(finding("memory-growth", 1.0, "keep"))
    findings, _ = restate(told, outcome("data", 3.0, intervention="cached"))
    assert findings[0].pattern == "memory-growth"


def test_elasticities_are_slopes_and_sum_up():
    forward = outcome("forward", 1.5**-0.6, intervention="delay", share=0.5)
    data = outcome("data", 1.5**-0.4, intervention="delay", share=0.5)
    assert conclude.elasticity(forward)[0] == pytest.approx(0.6)
    assert conclude._elasticity_sum([forward, data])[0] == pytest.approx(1.0)


def test_a_slope_of_one_block_is_open_on_both_sides_and_in_numbers():
    forward = outcome("forward", 0.9, intervention="delay", share=0.5)
    forward.log_ratios, forward.base_s = forward.log_ratios[:1], [0.1]
    slope, low, high = conclude.elasticity(forward)
    assert math.isfinite(low) and math.isfinite(high) and low < slope < high
    data = outcome("data", 0.8, intervention="delay", share=0.5)
    assert "uncertain" in conclude._of_sum(*conclude._elasticity_sum([forward, data]))


def slopes(**by_component):
    return conclude._elasticity_sum(
        [
            outcome(name, 1.5**-slope, intervention="delay", share=0.5, noise=0.005)
            for name, slope in by_component.items()
        ]
    )


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"forward": 0.6, "data": 0.4}, "account for the step"),
        ({"forward": 0.3, "data": 0.2}, "50 % of the step is in none of them"),
        ({"forward": 1.0, "layer": 0.9}, "more than the step"),
    ],
)
def test_what_the_sum_of_elasticities_means(parts, says):
    assert says in conclude._of_sum(*slopes(**parts))


def test_one_elasticity_is_no_sum():
    assert slopes(forward=0.6)[0] is None


def test_a_component_slowed_in_two_ways_counts_once():
    spins = Trial("data +50%", "delay", arm=({"kind": "delay", "by": "spin"},), share=0.5, component="data")
    sleeps = Trial("data +50% asleep", "delay", arm=({"kind": "delay", "by": "sleep"},), share=0.5, component="data")
    forward = outcome("forward", 1.5**-0.3, intervention="delay", share=0.5)
    data = [Outcome(spins, [math.log(1.5**-0.7)] * 4), Outcome(sleeps, [math.log(1.5**-0.1)] * 4)]
    for done in ([*data, forward], [forward, *reversed(data)]):
        assert conclude._elasticity_sum(done)[0] == pytest.approx(1.0)


def test_the_three_arms_split_waiting_from_taken_cores():
    cached = outcome("data", 4.0, intervention="cached")
    placebo = outcome(None, 0.5, intervention="placebo")
    waiting_s, taken_s = conclude._three_arms(0.4, [cached, placebo])
    assert taken_s == pytest.approx(0.1)
    assert waiting_s == pytest.approx(0.2)


def test_a_report_is_made_and_can_be_read_back():
    told = report(finding("callback-bound", 4.0, "log"))
    failed = Outcome(Trial("without x", "stub", arm=()), failure="it is a generator")
    found = Findings(told, None, [outcome("log", 4.0), failed])
    assert conclude.conclude(found, "overlay").kind == "simplify"
    assert Report.from_json(conclude.conclude(found, "overlay").to_json()).run.id == "1"


def test_what_shows_once_the_first_is_gone_is_the_next_bottleneck():
    alone, behind = outcome("save", 1.05), outcome("save", 1.6, intervention="interaction", base=({"kind": "log"},))
    (line,) = conclude._deeper([alone, behind])
    assert line.endswith("1.60×, 1.05× by itself: the next bottleneck")
