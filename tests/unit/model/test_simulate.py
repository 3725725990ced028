import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recurrences import ends, ends_alone

from unstall.model.simulate import simulate
from unstall.model.work import Layout, Work, empty

PLENTY = 64.0

times = st.integers(0, 2**31).map(lambda seed: np.random.default_rng(seed))


def drawn(random, count=60):
    """Times of a batch in one of three spreads, zeros among them."""
    kind = random.integers(3)
    if kind == 0:
        return np.full(count, random.uniform(0.001, 0.05))
    if kind == 1:
        return random.exponential(0.01, count)
    return random.choice([0.0, 0.003, 0.1], count)


@settings(max_examples=150, deadline=None)
@given(times, st.integers(1, 5), st.integers(1, 4), st.booleans())
def test_equals_the_recurrences_where_cores_are_plenty(random, workers, prefetch, syncs):
    s, u, g = (drawn(random) for _ in range(3))
    work = empty(len(s), service_cpu=s, body_cpu=u, device=g)
    layout = Layout(PLENTY, workers=workers, prefetch=prefetch, syncs=syncs)
    expected = ends(s, u, workers=workers, prefetch=prefetch, g=g, syncs=syncs)
    assert simulate(work, layout).done == pytest.approx(expected, abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(times)
def test_waiting_needs_no_core(random):
    s, u = drawn(random), drawn(random)
    work = empty(len(s), service_wait=s, body_wait=u)
    result = simulate(work, Layout(1.0, workers=3, prefetch=2))
    assert result.done == pytest.approx(ends(s, u, workers=3, prefetch=2), abs=1e-9)
    assert result.cores_busy_s == 0


@settings(max_examples=50, deadline=None)
@given(times)
def test_without_workers_one_thing_follows_the_other(random):
    s, u = drawn(random), drawn(random)
    result = simulate(empty(len(s), service_cpu=s, body_cpu=u), Layout(1.0))
    assert result.done == pytest.approx(ends_alone(s, u), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(times, st.integers(0, 6), st.integers(1, 4), st.floats(1, 4), st.booleans())
def test_no_law_of_the_machine_is_broken(random, workers, prefetch, cores, in_order):
    s, u = drawn(random), drawn(random)
    layout = Layout(cores, workers=workers, prefetch=prefetch, in_order=in_order)
    result = simulate(empty(len(s), service_cpu=s, body_cpu=u), layout)
    assert result.cores_busy_s == pytest.approx(s.sum() + u.sum())
    assert result.duration_s >= (s.sum() + u.sum()) / cores - 1e-9  # work conservation
    assert result.duration_s >= u.sum() - 1e-9
    assert (np.diff(result.done) >= -1e-12).all() and (result.got <= result.done + 1e-12).all()


@settings(max_examples=40, deadline=None)
@given(times, st.integers(0, 4), st.floats(0.1, 10))
def test_twice_the_work_takes_twice_the_time(random, workers, factor):
    work = empty(60, service_cpu=drawn(random), service_wait=drawn(random), body_cpu=drawn(random))
    layout = Layout(2.0, workers=workers, background=0.5)
    scaled = Work(**{name: getattr(work, name) * factor for name in Work.__dataclass_fields__})
    before, after = simulate(work, layout), simulate(scaled, layout)
    assert after.duration_s == pytest.approx(factor * before.duration_s, rel=1e-9)


def test_two_workers_on_one_core_gain_nothing():
    work = empty(200, service_cpu=np.full(200, 0.01))
    alone, two = simulate(work, Layout(1.0, workers=1)), simulate(work, Layout(1.0, workers=2))
    assert two.duration_s == pytest.approx(alone.duration_s)


def test_variance_costs_more_in_order_than_without():
    """Four workers, two ahead, exponential times, equal rates: 1.53 in order, 1.10 without, 1.14 with eight ahead."""
    random = np.random.default_rng(1)
    count = 20000
    work = empty(count, service_wait=random.exponential(4.0, count), body_wait=np.ones(count))

    def batch_s(**settings):
        return simulate(work, Layout(PLENTY, workers=4, **settings)).batch_s(200)

    assert batch_s(prefetch=2) == pytest.approx(1.53, abs=0.04)
    assert batch_s(prefetch=2, in_order=False) == pytest.approx(1.10, abs=0.04)
    assert batch_s(prefetch=8) == pytest.approx(1.14, abs=0.04)


def test_a_thread_aside_hides_what_it_does_until_it_is_the_slowest():
    def batch_s(aside):
        work = empty(300, body_wait=np.full(300, 0.01), aside_wait=np.full(300, aside))
        return simulate(work, Layout(2.0)).batch_s(50)

    assert batch_s(0.009) == pytest.approx(0.01)
    assert batch_s(0.030) == pytest.approx(0.03)


def test_each_epoch_begins_with_empty_queues():
    """One worker, 10 batches an epoch: the first batch of each is waited for in full."""
    work = empty(40, service_wait=np.full(40, 0.1), body_wait=np.full(40, 0.1))
    result = simulate(work, Layout(PLENTY, workers=1, epoch=10, epoch_open_s=0.5, epoch_close_s=0.25))
    per_epoch = 0.5 + 0.1 + 10 * 0.1
    assert result.duration_s == pytest.approx(4 * per_epoch + 3 * 0.25)


def test_other_programs_take_their_share():
    work = empty(50, body_cpu=np.full(50, 0.01))
    result = simulate(work, Layout(1.0, background=1.0))
    assert result.batch_s() == pytest.approx(0.02)
