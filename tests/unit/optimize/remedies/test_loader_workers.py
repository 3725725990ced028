"""Which worker counts are tried."""

from __future__ import annotations

import pytest

from unstall.optimize.remedies.loader_workers import counts


@pytest.mark.parametrize(("now", "cores"), [(0, 2), (2, 2), (8, 4), (1, 1), (16, 64)])
def test_more_and_fewer_workers_are_options_but_never_the_present_count(now, cores):
    found = counts(now, cores)
    assert now not in found and min(found) >= 0 and found == sorted(set(found))
    assert any(count > now for count in found)
    assert not now or any(count < now for count in found)
