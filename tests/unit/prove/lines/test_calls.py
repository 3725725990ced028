"""How often a function runs, under a program's own seeds and under others."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.prove.lines.calls import (
    CalledFunction,
    SeedDependence,
    counted_in,
    in_words,
    not_the_originals,
    rising,
    seed_dependent,
)

F, G = (CalledFunction("/program/train.py", name, line) for name, line in (("f", 3), ("g", 9)))


def test_counts_of_one_function_are_summed(tmp_path):
    path = tmp_path / "calls.json"
    path.write_text(json.dumps([[*F, 3, [0, 1, 1, 1]], [*G, 1, []], [*F, 4, [1, 1, 1, 1]]]))
    assert counted_in(path) == ({F: 7, G: 1}, {F: [1, 2, 2, 2]})


@pytest.mark.parametrize("content", ["", "[1]", '{"a": 1}', '[["a", "b", "c", "d"]]', "\0"])
def test_what_the_program_may_have_written_there_is_nothing(tmp_path, content):
    path = tmp_path / "calls.json"
    path.write_text(content)
    assert counted_in(path) == ({}, {})
    assert counted_in(tmp_path / "missing") == ({}, {})


@pytest.mark.parametrize(
    ("counts", "is_rising"),
    [
        ([10, 30, 50, 70], True),
        ([0, 10, 20, 30], False),
        ([10, 12, 14, 16], False),
        ([10, 40, 30, 90], False),
        ([5, 5, 5, 5], False),
    ],
)
def test_what_is_called_more_and_more_often_rises_from_quarter_to_quarter(counts, is_rising):
    assert rising({F: counts, G: [1, 1, 1, 1]}) == [(F, tuple(counts))] * is_rising


def test_only_a_count_that_all_other_seeds_agree_on_tells():
    assert seed_dependent({F: 1, G: 2}, [{F: 4, G: 2}, {F: 4, G: 2}]) == [SeedDependence(F, 1, 4)]
    assert seed_dependent({F: 1}, [{F: 4}, {F: 5}]) == []
    assert (
        seed_dependent({}, [{F: 4}]) == [] and seed_dependent({F: 1}, []) == [] and seed_dependent({F: 1}, [{}]) == []
    )


def test_a_function_that_is_not_called_there_is_called_no_times():
    assert seed_dependent({G: 1}, [{F: 4, G: 1}]) == [SeedDependence(F, 0, 4)]
    assert "f (train.py:3) runs 0 times" in in_words(SeedDependence(F, 0, 1), 5) and "once under 5 others" in in_words(
        SeedDependence(F, 0, 1), 5
    )


def test_a_function_of_the_original_is_known_by_its_name_though_its_line_has_moved():
    moved = CalledFunction(F.path, F.name, 30)
    assert not_the_originals([SeedDependence(F, 1, 4)], {moved: 1}, {moved: 4}) is None
    assert not_the_originals([SeedDependence(F, 1, 4)], {moved: 4}, {moved: 4}) == SeedDependence(F, 1, 4)
    assert not_the_originals([SeedDependence(F, 1, 4)], {}, {}) == SeedDependence(F, 1, 4)


@given(st.dictionaries(st.sampled_from([F, G]), st.integers(1, 9), min_size=1), st.integers(1, 5))
def test_runs_that_are_alike_are_never_told_apart(calls, others):
    assert seed_dependent(calls, [calls] * others) == []
