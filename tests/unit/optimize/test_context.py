"""What a remedy reads of the program."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from optimize_builders import make_context, make_report

from unstall.records.run import Throughput


def arithmetic(mfu):
    report = replace(make_report(), throughput=Throughput(steps_per_s=10.0, mfu=mfu))
    return make_context(report=report).arithmetic


def test_the_model_is_arithmetic_as_far_as_it_reaches_the_peak():
    assert arithmetic(0.03) == pytest.approx(0.1)
    assert arithmetic(0.9) == 1
    assert 0 < arithmetic(None) < 1
