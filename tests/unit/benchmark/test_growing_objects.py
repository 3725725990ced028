"""What keeps growing, by several looks at what a program keeps."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.benchmark.growing_objects import growing_objects


def entry(length, **changes):
    fields = {"kind": "list", "len": length, "bytes": 8 * length, "bounded": False, "graph": None}
    return {**fields, "file": "a.py", "function": "f", **changes}


@given(st.lists(st.integers(0, 1000), min_size=3, max_size=20))
def test_only_what_grows_nearly_always_is_growing(lengths):
    looks = [(10 * i, {"entries": {"x": entry(n)}}) for i, n in enumerate(lengths)]
    rises = [b > a for a, b in itertools.pairwise(lengths)]
    gains = [max(0, b - a) for a, b in itertools.pairwise(lengths)]
    expected = sum(rises) >= 0.8 * len(rises) and any(rises[-2:])
    expected = expected and lengths[-1] - lengths[0] >= sum(gains) / 2
    assert bool(growing_objects(looks)) == expected
    assert growing_objects(looks[::-1]) == growing_objects(looks)


def test_rates_are_a_steps():
    looks = [(10, {"entries": {"x": entry(3)}}), (20, {"entries": {"x": entry(23, wrapped=["a.py", "g", 7])}})]
    (found,) = growing_objects(looks)
    assert (found.len_per_step, found.bytes_per_step) == (2, pytest.approx(16))
    assert (found.path, found.file, found.function, found.wrapped) == ("x", "a.py", "f", ("a.py", "g", 7))
    assert growing_objects(looks[:1]) == []


def test_what_is_bounded_is_no_leak():
    looks = [(step, {"entries": {"x": entry(step, bounded=True)}}) for step in range(5)]
    assert growing_objects(looks) == []


def test_the_most_bytes_come_first_and_upstream_of_equal_graphs():
    def look(i):
        def graph(nodes):
            return {"nodes": nodes, "depth": 1, "span": nodes, "complete": True}

        big = {"kind": "tensor", "bytes": 4}
        entries = {
            "loss": entry(1, graph=graph(100 * i + 50), **big),
            "hidden": entry(1, graph=graph(100 * i + 10), **big),
            "small": entry(i),
        }
        return {"entries": entries}

    found = growing_objects([(i, look(i)) for i in range(1, 6)])
    assert [one.path for one in found] == ["hidden", "loss", "small"]
    assert found[0].graph_per_step == 100


def test_a_graph_too_large_to_count_grows_by_how_far_back_it_reaches():
    def look(i):
        graph = {"nodes": 2000, "depth": 9, "span": 500 * i, "complete": False}
        return {"entries": {"total": entry(1, graph=graph)}}

    (found,) = growing_objects([(i, look(i)) for i in range(10, 15)])
    assert found.graph_per_step == 500
