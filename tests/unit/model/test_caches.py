"""The law of what is lost by empty caches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.model import caches
from unstall.model.caches import Loss, seconds_after

SHARES = st.floats(0, 1)
LOSSES = st.lists(st.builds(Loss, st.floats(0, 1e-3), st.floats(0, 5), st.tuples(SHARES, SHARES)), max_size=3)


def test_a_larger_cache_is_cold_later():
    assert caches.cold_after_s(2 << 20) == 2 * caches.cold_after_s(1 << 20) > 0
    assert caches.cold_after_s(0) > 0, "a size that the system does not tell"


@given(st.floats(0, 0.98))
def test_ordinary_code_that_empties_so_much_empties_so_much(share):
    assert caches.emptied(caches.as_ordinary_s(share, 0.02), 0.02) == pytest.approx(share)


@given(st.floats(1e-6, 1), LOSSES)
def test_caches_that_are_warmer_never_make_a_part_slower(seen_s, losses):
    warm = [Loss(one.most_s, one.share, (one.emptied[0], 0.0)) for one in losses]
    cold = [Loss(one.most_s, one.share, (one.emptied[0], 1.0)) for one in losses]
    assert 0 < seconds_after(seen_s, warm) <= seconds_after(seen_s, losses) * (1 + 1e-9)
    assert seconds_after(seen_s, losses) <= seconds_after(seen_s, cold) * (1 + 1e-9)
    assert seconds_after(seen_s, warm) <= seen_s


@given(
    st.floats(1e-6, 1), st.builds(Loss, st.floats(0, 1e-3), st.floats(0, 5), SHARES.map(lambda share: (share, share)))
)
def test_without_a_change_a_part_takes_as_long_as_it_did(seen_s, loss):
    assert seconds_after(seen_s, [loss]) == pytest.approx(seen_s)


def test_a_part_that_is_alone_loses_to_nobody():
    (far, near) = caches.after_other_code("forward", (0.0, 0.0), (0.0, 0.0), 0.02)
    assert far.emptied == near.emptied == (0.0, 0.0)
    assert caches.after_mathematics("forward", (1.0, 0.0), 0.02) == []


def test_a_function_that_takes_half_as_long_empties_less_with_each_call():
    (loss,) = caches.between_calls(3.0, 0.75, 0.5)
    assert loss.emptied == (0.75, 0.5) and loss.most_s == 3 * caches.BETWEEN_CALLS_S
