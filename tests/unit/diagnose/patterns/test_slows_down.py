"""A step that grows: which function, what grows with it, and how it ranks."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from factory import CALL, Source, measurement, stack
from patterncase import TRAINING, check, host_findings, match

from unstall.diagnose.features import build
from unstall.diagnose.patterns.base import Features
from unstall.diagnose.patterns.host_bound import PATTERN as HOST_BOUND
from unstall.diagnose.patterns.slows_down import PATTERN
from unstall.records.measurements import GrowingObject, MemoryMeasurement, Slowing

STEP = sum(TRAINING.values())
CODE = """
def is_new(seen, item):
    return item not in seen  # search

def train(model, loader):
    seen = []
    losses = []
    for x in loader:
        fresh = is_new(seen, x)  # ask
        loss = model(x)  # model
        seen.append(x)
"""


def grown(path, file, **more):
    rates = {"len_per_step": 32.0, "bytes_per_step": 1e3, "graph_per_step": 0.0}
    return GrowingObject(path=path, kind="list", file=file, function="train", **{**rates, **more})


@pytest.fixture
def code(tmp_path):
    return Source(tmp_path / "train.py", CODE)


@pytest.fixture
def slowing(code):
    """The search takes a quarter of the early stacks, and three quarters of the later ones, of a longer step."""
    searching = (code.at("train", "# ask"), code.at("is_new", "# search"))
    modelling = (code.at("train", "# model"), CALL)
    return Slowing(
        per_1000=5.0,
        low=4.5,
        high=5.5,
        begin_s=STEP / 2,
        end_s=1.5 * STEP,
        phase="other",
        early=[stack(*searching, count=50), stack(*modelling, count=150)],
        late=[stack(*searching, count=300), stack(*modelling, count=100)],
        early_s=0.6 * STEP,
        late_s=1.4 * STEP,
    )


def test_the_function_that_later_steps_spend_more_time_in_is_the_culprit(code, slowing):
    finding = check(match("slows-down", slowing=slowing), "slows-down", headroom=1.9)
    assert (finding.culprit.function, finding.culprit.line) == ("is_new", code.line("# search"))
    assert finding.share == pytest.approx(0.5)
    assert finding.evidence[0] == "a step takes 500 % longer every 1,000 steps (95 %: 450 % to 550 %)"


def test_what_grows_with_it_is_what_the_culprit_names(code, slowing):
    memory = MemoryMeasurement(growing=[grown("losses", code.file, bytes_per_step=1e6), grown("seen", code.file)])
    finding = match("slows-down", slowing=slowing, memory=memory)
    assert finding.cause == "history"
    assert "seen (list) grows with it, by 32 entries a step" in finding.evidence


def test_without_stacks_of_both_halves_it_is_less_sure_of_the_function(slowing):
    finding = match("slows-down", slowing=msgspec.structs.replace(slowing, early=[]))
    assert finding.culprit is None and finding.confidence == "medium"


def test_a_steady_step_is_none():
    assert match("slows-down") is None


def test_it_comes_before_a_smaller_stall_and_after_a_larger_one(slowing):
    small = measurement({**TRAINING, "callback": 0.2 * STEP}, slowing=slowing)
    large = measurement({**TRAINING, "callback": 9 * STEP}, slowing=slowing)
    assert [finding.pattern for finding in host_findings(small)][:2] == ["slows-down", "callback-bound"]
    assert host_findings(large)[0].pattern == "callback-bound"


def test_it_ranks_by_its_phase_as_it_was_timed_wherever_the_stacks_put_that_time(slowing):
    """What makes a batch in the loop itself is timed as `other`, and diagnosed as the wait for data."""
    steep = msgspec.structs.replace(slowing, begin_s=0.2 * STEP, end_s=1.1 * STEP)
    host = build(measurement({**TRAINING, "other": 9 * STEP}, slowing=steep))
    moved = replace(host, seconds={**host.seconds, "data_wait": host.seconds["other"], "other": 0.0})
    finding = match("slows-down", slowing=steep)
    ranks = [PATTERN.rank(finding, Features(each, None)) for each in (host, moved)]
    assert ranks[0] == ranks[1] == pytest.approx(5.5)
    mostly = msgspec.structs.replace(steep, end_s=10 * STEP, begin_s=2 * STEP)
    host = build(measurement({**TRAINING, "other": 9 * STEP}, slowing=mostly))
    moved = replace(host, seconds={**host.seconds, "data_wait": host.seconds["other"], "other": 0.0})
    assert (
        PATTERN.rank(finding, Features(moved, None)) > host.headroom_without(9 * STEP) > mostly.end_s / mostly.begin_s
    )


def test_it_ranks_before_a_finding_that_counts_the_modules_own_python_with_that_phase(slowing):
    """Near the whole of a step, half a percent more of it is a ceiling a fifth higher."""
    mostly = msgspec.structs.replace(slowing, begin_s=2 * STEP, end_s=30 * STEP)
    host = build(measurement({**TRAINING, "other": 29 * STEP}, slowing=mostly))
    in_modules = replace(host, python_in_forward=0.3 * STEP)
    longer = HOST_BOUND.on_host(in_modules)
    finding = PATTERN.on_host(in_modules)
    assert longer.headroom > 1.2 * host.headroom_without(29 * STEP)
    assert PATTERN.rank(finding, Features(in_modules, None)) > longer.headroom


def test_where_the_step_is_mostly_what_grows_it_is_not_called_by_its_length(slowing):
    """The ceiling of code in the loop, which is calibrated, is higher than that of the growth."""
    mostly = msgspec.structs.replace(slowing, begin_s=2 * STEP, end_s=10 * STEP)
    first, *others = host_findings(measurement({**TRAINING, "other": 9 * STEP}, slowing=mostly))
    assert first.pattern == "slows-down"
    assert max(other.ceiling.value for other in others) > first.ceiling.value


def test_a_graph_that_grows_ends_the_run_first(code, slowing):
    points = [(float(step), 5e8 + 2e6 * step) for step in range(0, 200, 4)]
    kept = [grown("losses", code.file, graph_per_step=3.0)]
    memory = MemoryMeasurement(rss_by_step=points, growing=kept)
    assert host_findings(measurement(TRAINING, slowing=slowing, memory=memory))[0].pattern == "memory-growth"


def test_the_headline_says_how_much_and_where(slowing):
    finding = host_findings(measurement(TRAINING, slowing=slowing))[0]
    assert finding.summary == "a step takes 500 % longer every 1,000 steps in is_new"


def test_an_optimizer_of_subnormal_numbers_is_told_apart_from_what_keeps_all(code, slowing):
    updating = msgspec.structs.replace(slowing, phase="optimizer")
    kept = [grown("losses", code.file)]
    finding = match("slows-down", slowing=updating, memory=MemoryMeasurement(subnormal=0.04, growing=kept))
    assert finding.cause == "subnormals"
    assert "4 % of what the optimizer keeps is subnormal: closer to 0 than 1.2e-38" in finding.evidence
    assert "set_flush_denormal" in finding.advice[0]


@pytest.mark.parametrize(("phase", "subnormal"), [("optimizer", 0.001), ("other", 0.04)])
def test_few_of_them_or_growth_elsewhere_are_not_why(code, slowing, phase, subnormal):
    memory = MemoryMeasurement(subnormal=subnormal, growing=[grown("losses", code.file)])
    finding = match("slows-down", slowing=msgspec.structs.replace(slowing, phase=phase), memory=memory)
    assert finding.cause == "history"
