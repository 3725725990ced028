"""Sizes of single objects, and of the autograd graphs behind tensors."""

from __future__ import annotations

import collections
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.child import sizes


def sizer():
    return sizes.Sizer(time.thread_time() + 60)


@given(st.lists(st.integers()), st.integers(2, 20))
def test_elements_reach_from_the_first_to_the_last(items, most):
    for container in (items, tuple(items), collections.deque(items)):
        found = sizes.elements(container, most)
        assert len(found) == min(most, len(items))
        assert not items or (found[0], found[-1]) == (items[0], items[-1])


@given(st.dictionaries(st.integers(), st.integers()), st.integers(2, 20))
def test_elements_of_a_dictionary_are_its_values(items, most):
    found = sizes.elements(items, most)
    assert set(found) <= set(items.values())
    assert len(found) in (min(most, len(items)), most // 2 * 2)


@given(st.lists(st.binary(min_size=50, max_size=60), unique=True, min_size=1))
def test_an_estimate_is_near_the_sum(items):
    exact = list.__sizeof__(items) + sum(map(sys.getsizeof, items))
    assert sizer().estimate(items) == pytest.approx(exact, rel=0.1)


def test_an_estimate_counts_the_same_object_once():
    once = bytes(10_000)
    assert sizer().estimate([once] * 500) < 20_000


def test_an_estimate_looks_into_objects_and_nested_containers():
    class Record:
        def __init__(self):
            self.payload = bytes(1000)

    assert sizer().estimate([Record() for _ in range(100)]) > 100_000
    assert sizer().estimate([{"payload": bytes(1000)} for _ in range(100)]) > 100_000


@pytest.mark.parametrize("value", [1, 2.5, None, "short", object(), print, len, sizes])
def test_what_cannot_grow_has_no_measure(value):
    assert sizer().measure(value) is None


def test_a_bounded_deque_says_so():
    assert sizer().measure(collections.deque([1], maxlen=5))["bounded"]
    assert not sizer().measure(collections.deque([1]))["bounded"]


def test_sparse_and_meta_tensors_do_no_harm():
    torch = pytest.importorskip("torch")
    assert sizer().measure(torch.eye(3).to_sparse())["bytes"] == 0
    assert sizer().measure(torch.empty(3, device="meta"))["kind"] == "tensor"
    assert sizer().measure(torch.nn.Parameter(torch.ones(3))) is None


def test_a_graph_is_counted():
    torch = pytest.importorskip("torch")
    x = torch.ones(3, requires_grad=True)
    graph = sizer().measure((x * 2).exp().sum())["graph"]
    assert graph == {"nodes": 4, "span": 2, "complete": True}
    assert sizer().measure(x.detach() * 2)["graph"] is None


def test_a_walk_cut_short_still_reaches_the_oldest_node():
    torch = pytest.importorskip("torch")
    x = torch.ones(1, requires_grad=True)
    total = x * 1
    for _ in range(300):
        step = x
        for _ in range(20):
            step = step * 2
        total = total + step
    graph = sizes.walk_graph(total.grad_fn, time.thread_time() + 60)
    assert not graph["complete"]
    assert graph["nodes"] == sizes.GRAPH_NODE_LIMIT
    assert graph["span"] == 300 * 21
