"""The timeline itself: names, shapes, nesting, launches, steps."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kineto_files import MAIN, api, document, host, small, step, work, write

from unstall.trace.library import library
from unstall.trace.nesting import SLACK_NS, parents
from unstall.trace.readers import read, rows
from unstall.trace.readers.assemble import FAR_AWAY, UNBALANCED
from unstall.trace.readers.document import BEYOND, BROKEN_ENTRY
from unstall.trace.timeline import OperatorInputs, problem_lines

EVENTS = st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 9000), st.integers(0, 2)), max_size=40)


def timeline_of(tmp_path, content):
    (timeline,) = read(write(tmp_path / "t.json", content))
    return timeline


def columns(events):
    events = sorted(events, key=lambda e: (e[0], -e[1]))
    start, duration, thread = (np.array(c, np.int64) for c in zip(*events)) if events else (np.zeros(0, np.int64),) * 3
    return start, duration, thread.astype(np.int32)


@given(EVENTS)
def test_parents_are_around_and_innermost(events):
    start, duration, thread = columns(events)
    end = start + duration
    for row, parent in enumerate(parents(start, duration, thread).tolist()):
        around = [
            other
            for other in range(row)
            if thread[other] == thread[row] and end[other] > start[row] and end[other] + SLACK_NS >= end[row]
        ]
        assert parent == (max(around) if around else -1)


@given(EVENTS)
def test_parents_are_the_same_without_the_extension(events):
    start, duration, thread = columns(events)
    if not library():
        pytest.skip("the library in C was not built")
    fast = parents(start, duration, thread).tolist()
    sys.modules["unstall.trace._scan"] = None  # type: ignore[assignment]
    try:
        assert parents(start, duration, thread).tolist() == fast
    finally:
        del sys.modules["unstall.trace._scan"]


def test_parents_of_rounded_times():
    """In whole microseconds a child may seem to end after its parent, by one."""
    assert parents(*columns([(0, 5000, 0), (1000, 5000, 0)])).tolist() == [-1, 0]
    assert parents(*columns([(0, 5000, 0), (1000, 9000, 0)])).tolist() == [-1, -1]


def test_of_two_that_are_the_same_time_the_annotation_is_around(tmp_path):
    t = timeline_of(
        tmp_path,
        [
            host("aten::mm", 0, 10),
            host("block", 0, 10, "user_annotation"),
            api("cudaLaunchKernel", 0, 10, 1),
            step(0, 0, 10),
        ],
    )
    assert [t.names[n] for n in t.host.name] == ["ProfilerStep#0", "block", "aten::mm", "cudaLaunchKernel"]
    assert t.parent.tolist() == [-1, 0, 1, 2]


def test_rows_are_in_order_of_time(tmp_path):
    t = timeline_of(tmp_path, list(reversed(small(4))))
    assert all(a <= b for a, b in pairwise(t.host.start_ns.tolist()))
    assert all(a <= b for a, b in pairwise(t.device.start_ns.tolist()))
    assert t.window_ns == (0, int(max(t.host.end_ns.max(), t.device.end_ns.max())))


def test_names_are_looked_at_once_each(tmp_path):
    t = timeline_of(tmp_path, small(5))
    seen = []
    flags = t.names_where(lambda name: bool(seen.append(name)) or name.startswith("cuda"))
    assert sorted(seen) == sorted(set(t.names))
    assert flags[t.host.name].sum() == 20


def test_steps_are_those_of_the_thread_that_has_most(tmp_path):
    t = timeline_of(tmp_path, [*small(3), step(9, 0, 50, tid=999)])
    assert t.steps.number.tolist() == [0, 1, 2]
    assert t.threads[t.main_thread].tid == MAIN


def test_numbered_ranges_stand_in_for_steps(tmp_path):
    ranges = [host(f"train_step {n}", n * 100, 90, "user_annotation") for n in range(4)]
    other = [host(f"layer {n}", n * 100, 10, "user_annotation") for n in range(9)]
    nested = [host(f"micro batch {n}", n, 1000 - n, "user_annotation") for n in range(6)]
    t = timeline_of(tmp_path, [*ranges, *other, *nested])
    assert t.steps.number.tolist() == [0, 1, 2, 3]
    assert [t.names[t.host.name[row]] for row in t.steps.row] == [f"train_step {n}" for n in range(4)]


def test_waits_for_batches_mark_the_steps_where_nothing_else_does(tmp_path):
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    waits = [host(name, n * 100, 20, "user_annotation") for n in range(3)]
    t = timeline_of(tmp_path, [host("aten::mm", 5, 1, tid=7), *waits, host("aten::mm", 290, 5)])
    assert t.steps.start_ns.tolist() == [0, 100_000, 200_000]
    assert t.steps.dur_ns.tolist() == [100_000, 100_000, 95_000]
    assert t.steps.number.tolist() == [-1] * 3
    assert t.threads[t.main_thread].tid == MAIN
    assert len(timeline_of(tmp_path, waits[:1]).steps) == 0


def test_a_trace_without_steps(tmp_path):
    t = timeline_of(tmp_path, [host("aten::mm", 0, 5, tid=4), host("aten::mm", 0, 50, tid=5)])
    assert len(t.steps) == 0
    assert t.threads[t.main_thread].tid == 5


def test_a_trace_of_a_device_alone(tmp_path):
    t = timeline_of(tmp_path, [work("gemm", 5, 10, 3)])
    assert (len(t.host), t.main_thread, t.launch.tolist(), t.window_ns) == (0, -1, [-1], (0, 10_000))


@pytest.mark.parametrize(
    ("what", "count", "line"),
    [
        ("events without a time", 1, "1 event without a time"),
        ("negative durations (read as 0)", 1200, "1,200 negative durations (read as 0)"),
        ("events that are not valid JSON", 1, "1 event that is not valid JSON"),
        ("entries next to the events that are not valid JSON", 1, "1 entry next to the events that is not valid JSON"),
        ("entries without an event", 1, "1 entry without an event"),
        ("packed file cut off in the middle", 1, "packed file cut off in the middle"),
        ("packed file cut off in the middle", 3, "3 times: packed file cut off in the middle"),
    ],
)
def test_problems_in_words(what, count, line):
    assert problem_lines({what: count}) == [line]


def test_every_problem_is_worded_for_one():
    for what in [
        rows.MALFORMED,
        rows.NO_OBJECT,
        rows.UNTIMED,
        rows.NEGATIVE,
        rows.UNENDED,
        rows.BEYOND_64_BITS,
        rows.UNKNOWN_PHASE,
        UNBALANCED,
        FAR_AWAY,
        BEYOND,
        BROKEN_ENTRY,
    ]:
        (line,) = problem_lines({what: 1})
        assert " are " not in line


@pytest.mark.parametrize("text", ["", "[1,", "{}", "5", "[5, [], null]", "[]", "[" * 100_000])
def test_inputs_that_are_no_lists_are_empty(text):
    assert OperatorInputs.parse(text) == OperatorInputs()


def test_a_document_says_its_rank(tmp_path):
    t = timeline_of(tmp_path, document(small(1), distributedInfo={"rank": "x", "world_size": True}))
    assert (t.rank, t.world_size) == (None, None)
