"""Readings at equal distances, and never more than a bounded number of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unstall.child.trial.spaced import Spaced


@given(st.integers(2, 9), st.integers(0, 200))
def test_readings_are_as_far_apart_as_they_must_be(most, moments):
    spaced = Spaced(lambda: spaced.moments, most)
    for _ in range(moments):
        spaced.note()
    assert spaced.readings == list(range(0, moments, spaced.every))
    assert len(spaced.readings) < most
