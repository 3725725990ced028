"""What holds of every pattern."""

from __future__ import annotations

import pytest
from patterncase import TRAINING, match

from unstall.diagnose.patterns import all_patterns
from unstall.records.model import ModelMeasurement
from unstall.report.schema import schema

COMPUTING = ModelMeasurement(
    threads=4, dtype="torch.float32", batch_size=32, forwards=1, flops=5e9, peak_flops=1e11, flops_coverage=1.0
)
"""Half of the machine's peak in an ordinary step."""


def test_there_is_one_file_for_each_pattern_of_the_contract():
    named = schema()["$defs"]["finding"]["properties"]["pattern"]["description"]
    assert all(name in named for name in all_patterns())


@pytest.mark.parametrize("pattern", sorted(set(all_patterns()) - {"healthy", "unexplained"}))
def test_an_ordinary_step_shows_no_pattern_worth_fixing(pattern):
    finding = match(pattern, model=COMPUTING)
    assert finding is None or finding.headroom < 1.18


@pytest.mark.parametrize("phases", [TRAINING, {"other": 0.1}, {"validation": 0.1, "forward": 0.02}])
@pytest.mark.parametrize("model", [ModelMeasurement(), COMPUTING])
def test_either_healthy_or_unexplained_stands_between(phases, model):
    found = [match(pattern, phases, model=model) for pattern in ("healthy", "unexplained")]
    assert sum(finding is not None for finding in found) == 1
