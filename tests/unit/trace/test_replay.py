"""The replay gives the recorded time, and what a change would give is what the changed program takes."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from gpu_programs import (
    Program,
    busy_host,
    compute_bound,
    copies,
    launch_bound,
    reads_back,
    reduces,
    waits_for_data,
)

from unstall.trace.library import library
from unstall.trace.metrics import TimelineMetrics
from unstall.trace.replay.replay import Replay
from unstall.trace.replay.simulate import GraphChange, longest_paths, simulate
from unstall.trace.replay.whatif import parse
from unstall.trace.timeline import TraceError, WaitKind, WaitTable


def _replay(program: Program) -> Replay:
    return TimelineMetrics(program.timeline()).replay


@pytest.mark.parametrize(
    "make",
    [launch_bound, compute_bound, reads_back, waits_for_data, busy_host, copies, reduces],
    ids=lambda f: f.__name__,
)
def test_a_recording_is_reproduced(make):
    replay = _replay(make())
    assert replay.faithful
    assert abs(replay.error) < 0.01
    assert replay.graph.dropped == 0


@pytest.mark.parametrize(
    ("slow", "fixed", "what_if"),
    [
        (waits_for_data(), waits_for_data(wait=0.0), "data=0"),
        (busy_host(), busy_host(gap=0.0), "host=0"),
        (reads_back(), reads_back(every=100), "sync=0"),
        (compute_bound(), launch_bound(kernel_us=90.0), "compute=0.5x"),
        (compute_bound(), launch_bound(kernel_us=90.0), "aten::mul=0.5x"),
        (reduces(), reduces(overlapped=True), "nccl=overlapped"),
    ],
    ids=["data", "host", "sync", "compute", "operator", "communication"],
)
def test_predictions_are_what_the_fixed_program_takes(slow, fixed, what_if):
    true = slow.step_us() / fixed.step_us()
    assert _replay(slow).gain(what_if) == pytest.approx(true, rel=0.12)


def test_the_longest_path_is_the_same_without_the_extension(monkeypatch):
    if not library():
        pytest.skip("the library in C was not built")
    graph = _replay(reads_back()).graph
    wanted = GraphChange.none(graph)
    wanted.drop[::7] = True
    native = [simulate(graph), simulate(graph, wanted)]
    monkeypatch.setitem(sys.modules, "unstall.trace._scan", None)
    for one, other in zip(native, [simulate(graph), simulate(graph, wanted)]):
        assert one.end_ns > 0
        np.testing.assert_array_equal(one.time_ns, other.time_ns)
        np.testing.assert_array_equal(one.binding, other.binding)


@pytest.mark.parametrize(
    ("pointer", "src", "lag"),
    [([0, 0, 1], [1], [1.0]), ([0, 0, 2], [0], [1.0]), ([0, 2, 1], [0], [1.0]), ([0, 0, 1], [0], []), ([], [], [])],
    ids=["backward", "beyond", "descending", "lengths", "empty"],
)
def test_a_graph_that_is_none_is_refused(pointer, src, lag):
    if not library():
        pytest.skip("the library in C was not built")
    with pytest.raises(ValueError, match=r"backward|is needed"):
        longest_paths(library(), np.array(pointer, np.int64), np.array(src, np.int64), np.array(lag, np.float64))


def test_free_launches_leave_the_kernels():
    program = launch_bound()
    kernels = 50 * (3.0 + 2.0)  # no two of them follow at once, so the gap is not known and taken to be 2 µs
    assert _replay(program).gain("launch=0") == pytest.approx(program.step_us() / kernels, rel=0.05)


def test_a_change_off_the_critical_path_gains_nothing():
    assert _replay(compute_bound()).gain("sync=0") == pytest.approx(1, abs=0.02)
    assert _replay(launch_bound()).gain("compute=0.5x") == pytest.approx(1, abs=0.02)
    assert _replay(waits_for_data()).gain("nccl=0") == 1


def test_pinned_copies_free_the_host_and_not_the_stream():
    replay = _replay(copies())
    assert 1 <= replay.gain("copies=pinned") < replay.gain("copies=overlapped")
    assert replay.gain("copies=overlapped") == pytest.approx(1500 / 1000, rel=0.1)


def test_slower_is_below_one():
    assert _replay(compute_bound()).gain("compute=2x") == pytest.approx(0.5, rel=0.05)


def test_the_critical_path_is_what_takes_the_time():
    programs = {"compute": compute_bound(), "submitting": launch_bound(), "loader": waits_for_data()}
    for kind, program in programs.items():
        path = _replay(program).critical
        assert max(path, key=lambda name: path[name]) == kind
        assert sum(path.values()) == pytest.approx(1)


def test_backward_on_a_thread_of_its_own():
    """The main thread waits for autograd's; when that is faster, so is the main thread."""
    program = Program()
    for _ in range(3):
        with program.step():
            for _ in range(10):
                program.launch(5.0)
            forward = len(program.events)
            for _ in range(20):
                program.launch(5.0, operator="autograd::engine::evaluate_function: MulBackward0")
            for event in program.events[forward:]:
                if "dur" in event and event["tid"] == 100:
                    event["tid"] = 200
            for _ in range(5):
                program.launch(5.0, operator="Optimizer.step#SGD.step")
        program.sync()
    replay = _replay(program)
    assert replay.faithful
    assert replay.gain("launch=0") > 1.8


def test_a_recorded_wait_for_an_event_holds_when_kernels_are_faster():
    """The second stream waits for an event of the first; its kernel comes no sooner however early it is launched."""
    program = Program()
    with program.step():
        program.launch(1000.0)
        program.busy(1500.0)
        program.launch(500.0, "other_kernel", stream=20)
    program.sync()
    timeline = program.timeline()
    none = TimelineMetrics(timeline).replay.gain("host=0")
    waits = dict.fromkeys(("start_ns", "dur_ns"), np.zeros(1, np.int64))
    timeline.waits = WaitTable(
        **waits,
        kind=np.array([WaitKind.STREAM_WAIT], np.uint8),
        device=np.zeros(1, np.int32),
        stream=np.array([20]),
        correlation=np.array([1]),
        on_stream=np.array([7]),
        on_correlation=np.array([2]),
    )
    with_wait = TimelineMetrics(timeline).replay
    assert with_wait.faithful
    assert none == pytest.approx(2.0, rel=0.1)
    assert with_wait.gain("host=0") == pytest.approx(2040 / 1530, rel=0.1)


def test_of_a_long_trace_a_part_is_replayed(monkeypatch):
    monkeypatch.setattr("unstall.trace.replay.replay.MOST_WORK", 150)
    replay = _replay(launch_bound(steps=12))
    assert replay.partial
    assert replay.steps == 3
    assert replay.faithful
    assert replay.gain("launch=0") > 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("launch=0", "launch=0"),
        ("nccl=0.5x", "nccl=0.5x"),
        ("comm=.5", "nccl=0.5x"),
        ("aten::mm=0.5X", "aten::mm=0.5x"),
        ("dataloader=0", "data=0"),
        ("copies=pinned", "copies=pinned"),
        ("a=b=2x", "a=b=2x"),
    ],
)
def test_what_ifs_are_read(text, shown):
    assert str(parse(text)) == shown


@pytest.mark.parametrize(
    "text", ["", "launch", "=0", "launch=", "nccl=-1", "nccl=fast", "launch=pinned", "nccl=pinned"]
)
def test_what_cannot_be_read_is_said(text):
    with pytest.raises(TraceError, match="what-if"):
        parse(text)


def test_a_name_that_did_nothing_is_said_and_a_close_one_told():
    with pytest.raises(TraceError, match=r"aten::mull: no operator.*did you mean aten::mul"):
        _replay(launch_bound()).gain("aten::mull=0.5x")


def test_a_kernel_is_named_by_a_part_of_its_name():
    assert _replay(compute_bound()).gain("mul_kern=0.5x") > 1.8


def test_the_critical_path_by_operator():
    program = Program()
    for _ in range(3):
        with program.step():
            for _ in range(10):
                program.launch(300.0, operator="aten::mm")
            for _ in range(10):
                program.launch(100.0, operator="aten::add")
            with program.inside("aside", "user_annotation"):
                program.launch(50.0, operator="aten::mul", stream=9)
        program.sync()
    replay = _replay(program)
    assert list(replay.critical_operators)[:2] == ["aten::mm", "aten::add"]
    assert replay.critical_operators["aten::mm"] == pytest.approx(3000 / 4100, rel=0.05)
    assert replay.critical_operators.get("aten::mul", 0.0) < 0.01
    assert sum(replay.critical_operators.values()) <= 1 + 1e-9


def test_what_the_program_does_itself_is_no_operators_time():
    replay = _replay(busy_host(gap=4000.0))
    assert sum(replay.critical_operators.values()) < 0.5
    assert replay.critical["host"] > 0.5
