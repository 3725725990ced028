"""Environment-bound: the steps of environments."""

from __future__ import annotations

import pytest
from factory import (
    CALL,
    lib,
    measurement,
    stack,
)
from patterncase import check, host_findings, match


def test_environment_bound_by_its_step(code):
    gym = lib("gymnasium/core.py", "step")
    samples = [
        stack(code.at("main", "# model"), gym, code.at("suppress", "# suppress"), count=90),
        stack(CALL, count=10),
    ]
    finding = check(
        match("environment-bound", {"env": 0.09, "forward": 0.01}, kind="env", envs=8, samples=samples),
        "environment-bound",
        headroom=5,
    )
    assert (finding.cause, finding.culprit.function) == ("env", "suppress")


def test_environment_bound_by_one_environment_at_a_time(code):
    """The policy's calls cost more than the environment, and each is for one observation."""
    finding = check(
        match(
            "environment-bound",
            {"env": 0.01, "forward": 0.09},
            kind="env",
            envs=1,
            sites=[code.site("~env.step", "main", "# ask")],
        ),
        "environment-bound",
    )
    assert finding.cause == "batching"


def test_several_environments_that_are_stepped_in_turn_are_not_one_at_a_time(code):
    phases = {"env": 0.03, "forward": 0.09}
    finding = match("environment-bound", phases, kind="env", envs=1, observations=4)
    assert (finding.cause, finding.share) == ("env", pytest.approx(0.25))


def test_hardly_any_time_in_the_environment_is_no_verdict(code):
    """What it takes to act is then the program's own Python or its small operators, and says so."""
    acting = stack(code.at("main", "# model"), count=60)
    samples = [acting, stack(code.at("main", "# model"), CALL, count=40)]
    measured = measurement(
        {"env": 0.005, "forward": 0.04, "other": 0.055},
        kind="env",
        samples=samples,
        sites=[code.site("~env.step", "main", "# ask"), code.site("~forward", "main", "# model")],
    )
    verdict, *others = host_findings(measured)
    assert verdict.pattern == "host-bound"
    assert "environment-bound" in [finding.pattern for finding in others]


def test_a_program_without_environments_is_not_environment_bound():
    assert match("environment-bound") is None
