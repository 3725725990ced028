"""When a server has no request, against a count of small moments."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spanfactory import Recording

from unstall.benchmark.idle import without_request

SECOND = 1_000_000_000


def process(requests):
    """A recording of requests: (second of the beginning, seconds)."""
    r = Recording(begin=0)
    for began, took in sorted(requests, key=lambda request: sum(request)):
        r.now = (began + took) * SECOND
        r.do("~request", arg=took * SECOND)
    return r.process()


def test_a_program_that_serves_nothing_has_none():
    assert without_request(process([]), np.array([0.0, 1.0, 2.0])).tolist() == [0.0, 0.0]


def test_requests_that_overlap_count_once():
    assert without_request(process([(1, 4), (2, 2), (8, 1)]), np.array([0.0, 10.0])) == pytest.approx(5.0)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15)), min_size=1), st.sets(st.integers(0, 60), min_size=2))
def test_it_is_all_that_no_request_covers(requests, edges):
    edges = sorted(edges)
    covered = {second for began, took in requests for second in range(began, began + took)}
    free = [sum(second not in covered for second in range(*step)) for step in pairwise(edges)]
    assert without_request(process(requests), np.array(edges, float)) == pytest.approx(np.array(free, float))
