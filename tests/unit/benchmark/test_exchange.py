"""What DistributedDataParallel logs of single steps, put together."""

from __future__ import annotations

import pytest

from unstall.benchmark.exchange import gradient_exchange


def logged(iteration, exchange_ms, hidden_ms=1.0, model=1, **more):
    values = {"buckets": [100, 20], "looks_for_unused": False, "unused_bytes": 0, "copies_buckets": True}
    times = {"exchange_ns": exchange_ms * 1e6, "hidden_ns": hidden_ms * 1e6, "backward_ns": 5e6}
    return {"model": model, "iteration": iteration, **times, **values, **more}


def test_without_a_timed_step_nothing_is_known():
    assert gradient_exchange([]) is None


def test_one_slow_step_is_not_all():
    exchange = gradient_exchange([logged(3, 2.0), logged(4, 900.0), logged(5, 4.0)])
    assert exchange.took_s == pytest.approx(0.004)
    assert (exchange.hidden_s, exchange.backward_s) == (pytest.approx(0.001), pytest.approx(0.005))
    assert (exchange.buckets, exchange.copies_buckets) == ((100, 20), True)


def test_a_step_that_was_read_twice_counts_once():
    exchange = gradient_exchange([logged(10, 9.0), logged(10, 9.0), logged(100, 1.0)])
    assert exchange.took_s == pytest.approx(0.005)


def test_several_models_exchange_one_after_the_other():
    exchange = gradient_exchange([logged(3, 2.0), logged(3, 3.0, model=2, buckets=[7])])
    assert (exchange.took_s, exchange.buckets) == (pytest.approx(0.005), (100, 20, 7))


@pytest.mark.parametrize("unused_bytes, needless", [(0, True), (64, False)])
def test_looking_for_unused_parameters_is_needless_where_none_is(unused_bytes, needless):
    exchange = gradient_exchange([logged(3, 2.0, looks_for_unused=True, unused_bytes=unused_bytes)])
    assert exchange.looks_for_unused is needless
