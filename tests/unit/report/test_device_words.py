"""What a pattern means on a device, in words."""

import pytest

from unstall.report.device_words import sentence


def test_the_shares_of_the_step_are_told():
    assert sentence("compute-bound", {"compute": 0.934, "busy": 0.95}) == "the device computes 93 % of a step"


@pytest.mark.parametrize("pattern, shares", [("callback-bound", {"compute": 0.5}), ("input-bound", {"compute": 0.5})])
def test_nothing_is_said_without_its_figure(pattern, shares):
    assert sentence(pattern, shares) == ""
