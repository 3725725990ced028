"""The tables of thresholds: one a room, each number with its reason."""

from __future__ import annotations

import pytest

from unstall.diagnose import thresholds as diagnose
from unstall.threshold import Threshold
from unstall.trace import thresholds as trace


@pytest.mark.parametrize("table", [diagnose, trace])
def test_every_number_of_a_table_has_its_reason(table):
    named = {name: value for name, value in vars(table).items() if name.isupper()}
    assert named
    assert all(isinstance(value, Threshold) and len(value.why) > 20 for value in named.values())


def test_a_threshold_is_a_number_to_compare_with():
    few = Threshold(3.0, "a reason that is long enough")
    assert 2 < few < 4 and 2 * few == 6.0
