"""Debugging-bound: checks that were left on."""

from __future__ import annotations

import pytest
from factory import CALL, lib, measurement, stack, std
from patterncase import TRAINING, check, host_findings, match

from unstall.records.model import ModelMeasurement, OperatorLine
from unstall.records.observations import Frame

NOTES = (lib("torch/fx/traceback.py", "format_stack"), std("traceback.py", "format_stack"))
CHECKS = (lib("torch/distributions/normal.py", "__init__"), lib("torch/distributions/distribution.py", "__init__"))
CHECK = lib("torch/distributions/constraints.py", "check")
CHECKER = (
    lib("gymnasium/wrappers/common.py", "step"),
    lib("gymnasium/utils/passive_env_checker.py", "env_step_passive_checker"),
)


def samples(code, *inside, share):
    """A model of whose samples this share ends with these frames."""
    calling = (code.at("main", "# call suppress"), CALL, code.at("suppress", "# suppress"))
    return [stack(*calling, *inside, count=round(1000 * share)), stack(*calling, count=round(1000 * (1 - share)))]


@pytest.mark.parametrize(
    ("frames", "cause"),
    [(NOTES, "anomaly-detection"), ((*CHECKS, CHECK), "argument-checks"), (CHECKS, "argument-checks")],
)
def test_what_checks_is_named_with_whom_it_looks_at(code, frames, cause):
    finding = check(
        match("debugging-bound", samples=samples(code, *frames, share=0.4)), "debugging-bound", headroom=1.6
    )
    assert (finding.cause, finding.culprit.function) == (cause, "suppress")
    assert finding.share == pytest.approx(0.4) and finding.headroom == pytest.approx(1 / 0.6)
    assert finding.evidence[0].startswith("40 % of a step, 40 ms, is ")


def test_what_is_checked_is_no_check(code):
    within = samples(code, *CHECKER, Frame("step", code.file, code.line("# suppress")), share=0.4)
    assert match("debugging-bound", samples=within) is None
    looking = samples(code, *CHECKER, lib("gymnasium/utils/passive_env_checker.py", "check_obs"), share=0.4)
    assert match("debugging-bound", samples=looking).cause == "environment-checker"


def test_little_of_it_is_not_worth_a_word(code):
    assert match("debugging-bound", samples=samples(code, *NOTES, share=0.03)) is None


def test_several_are_told_together_the_costliest_first(code):
    both = [*samples(code, *NOTES, share=0.2), *samples(code, *CHECKS, share=0.4)]
    finding = match("debugging-bound", samples=both)
    assert finding.cause == "argument-checks" and finding.share == pytest.approx(0.3)
    assert len(finding.advice) == 2 and finding.evidence[1].startswith("10 % of a step")


@pytest.mark.parametrize(("share", "first"), [(0.3, "debugging-bound"), (0.1, "compute-bound")])
def test_a_good_part_of_the_step_comes_before_the_model_itself(code, share, first):
    model = ModelMeasurement(dtype="torch.float64", threads=4)
    found = host_findings(measurement(TRAINING, samples=samples(code, *NOTES, share=share), model=model))
    assert found[0].pattern == first
    assert {"debugging-bound", "compute-bound"} <= {finding.pattern for finding in found}


def test_a_larger_stall_comes_first(code):
    phases = {**TRAINING, "data_wait": 0.3}
    found = host_findings(measurement(phases, samples=samples(code, *NOTES, share=0.3)))
    assert found[0].pattern == "input-bound"
    assert found[0].headroom > 3
    assert found[0].advice[-1].startswith("30 % of each step goes into autograd's anomaly detection in suppress; once")


def test_anomaly_detection_is_known_to_be_on_where_no_stack_shows_it(code):
    lines = [OperatorLine((code.at("suppress", "# suppress"),), 0.01, 0.02, calls=200, per_step=0.5)]
    model = ModelMeasurement(anomaly=True)
    finding = match("debugging-bound", model=model, operators=lines, samples=samples(code, share=1.0))
    check(finding, "debugging-bound")
    assert (finding.cause, finding.culprit.function) == ("anomaly-detection", "suppress")
    assert finding.share == pytest.approx((100 * 7e-5 + 0.35 * TRAINING["backward"]) / 0.1)
    assert match("debugging-bound", operators=lines, samples=samples(code, share=1.0)) is None


def test_noting_stacks_takes_no_more_than_forward(code):
    lines = [OperatorLine((code.at("suppress", "# suppress"),), 0.01, 0.02, calls=10_000, per_step=1.0)]
    finding = match("debugging-bound", model=ModelMeasurement(anomaly=True), operators=lines)
    assert finding.share == pytest.approx((0.9 * TRAINING["forward"] + 0.35 * TRAINING["backward"]) / 0.1)
