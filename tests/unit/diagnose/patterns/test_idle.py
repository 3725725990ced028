"""Idle: a server that waits for requests."""

from __future__ import annotations

import pytest
from patterncase import check, match


def test_a_server_without_requests_most_of_the_time_is_idle():
    finding = check(match("idle", {"idle": 0.08, "forward": 0.01, "other": 0.01}), "idle", headroom=3)
    assert (finding.cause, finding.share) == ("requests", pytest.approx(0.8))
    assert match("idle", {"idle": 0.05, "forward": 0.03, "other": 0.02}) is None
