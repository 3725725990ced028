"""Ranges that a profiler shows on the device, and the parts of a program that are told by them."""

from __future__ import annotations

import json

import pytest
from gpu_programs import Program, launch_bound, reduces
from kineto_files import api, document, host, step, work, write

from unstall.exports import export, exporters
from unstall.trace.metrics import TimelineMetrics
from unstall.trace.readers import read
from unstall.trace.regions import regions


def _shown(name: str, begin: float, end: float, stream: int = 7, device: int = 0):
    return work(name, begin, end - begin, cat="gpu_user_annotation", stream=stream, device=device)


def _with_ranges(program: Program, name: str = "train_step") -> Program:
    """A range on the device over all of the program's work, and the profiler's own over each step."""
    done = [one for one in program.events if one["cat"] == "kernel"]
    first = min(one["ts"] for one in done)
    last = max(one["ts"] + one["dur"] for one in done)
    for what in (name, "ProfilerStep#1"):
        program.events.append(_shown(what, 0, last - first) | {"ts": first})
    return program


def test_they_are_no_work():
    plain, shown = TimelineMetrics(launch_bound().timeline()), TimelineMetrics(_with_ranges(launch_bound()).timeline())
    assert len(shown.timeline.ranges) == 2
    assert len(shown.timeline.device) == len(plain.timeline.device)
    assert shown.shares == plain.shares
    assert shown.kernels_per_step == plain.kernels_per_step
    assert [one.name for one in shown.kernels.by_kernel()] == ["mul_kernel"]
    assert shown.windows.total_ns == plain.windows.total_ns


def test_they_tell_the_part_where_no_launch_does(tmp_path):
    events = [step(1, 0, 1000), host("aten::mul", 0, 10)]
    events += [work("early", 100, 200), work("late", 400, 100)]  # launched by what was not recorded
    events += [work("elsewhere", 600, 50, stream=9), work("after", 700, 50)]
    events += [_shown("ProfilerStep#1", 100, 900), _shown("outer", 100, 500), _shown("inner", 400, 500)]
    (timeline,) = read(write(tmp_path / "t.json", document(events)))
    (found,) = regions(TimelineMetrics(timeline))
    assert found.name == "outer"
    assert found.share == pytest.approx(0.5)
    assert found.parts["compute"] == pytest.approx(300 / 500)
    assert found.busy == found.parts["compute"]
    assert found.exposed == 0


def test_the_launch_goes_before_what_is_shown():
    program = Program()
    with program.step():
        with program.inside("forward", "user_annotation"):
            program.launch(100.0)
        program.launch(100.0)
    program.sync()
    names = [one.name for one in regions(TimelineMetrics(_with_ranges(program, "shown").timeline()))]
    assert sorted(names) == ["forward", "shown"]


@pytest.mark.parametrize("overlapped", [False, True])
def test_communication_that_is_hidden_takes_no_time_of_a_part(overlapped):
    program = reduces(overlapped=overlapped)
    for number in range(program.steps):
        steps = [one for one in program.events if one["name"] == f"ProfilerStep#{number + 1}"]
        program.events.append(steps[0] | {"name": "train_step"})
    metrics = TimelineMetrics(program.timeline())
    (found,) = regions(metrics)
    assert found.name == "train_step"
    assert sum(found.parts.values()) == pytest.approx(1)
    for use in ("compute", "communication"):
        assert found.parts.get(use, 0.0) * found.share == pytest.approx(metrics.shares[use], abs=0.01)
    assert (found.exposed > 0.3) == (not overlapped)
    assert found.busy * found.share == pytest.approx(metrics.shares["busy"], abs=0.01)


def test_parts_have_their_copies():
    program = Program()
    for _ in range(3):
        with program.step():
            with program.inside("to_device", "user_annotation"):
                program.copy(1000.0, "HtoD", size=12_000_000)
            with program.inside("model", "user_annotation"):
                for _ in range(10):
                    program.launch(200.0)
        program.sync()
    uses = {"copies": "transfer-bound", "compute": "compute-bound", "host": "host-bound"}
    found = {one.name: one for one in regions(TimelineMetrics(program.timeline()), uses)}
    assert {name: one.pattern for name, one in found.items()} == {
        "to_device": "transfer-bound",
        "model": "compute-bound",
    }
    assert found["to_device"].exposed == pytest.approx(found["to_device"].busy)


def test_a_part_that_only_the_host_works_in():
    program = Program()
    for _ in range(3):
        with program.step():
            with program.inside("prepare", "user_annotation"):
                program.busy(2000.0)
            with program.inside("model", "user_annotation"):
                for _ in range(10):
                    program.launch(200.0)
            program.sync()
    uses = {"copies": "transfer-bound", "compute": "compute-bound", "host": "host-bound"}
    found = {one.name: one for one in regions(TimelineMetrics(program.timeline()), uses)}
    assert {name: one.pattern for name, one in found.items()} == {"prepare": "host-bound", "model": "compute-bound"}
    assert found["prepare"].share == pytest.approx(2000 / program.step_us(), rel=0.05)
    assert found["prepare"].busy == 0


def test_what_another_thread_launches_is_of_the_part_that_the_main_thread_is_in(tmp_path):
    events = [
        step(1, 0, 1000),
        host("forward", 0, 300, "user_annotation"),
        host("backward", 300, 600, "user_annotation"),
    ]
    events += [api("cudaLaunchKernel", 10, 5, 1), work("mm", 20, 200, 1)]
    events += [api("cudaLaunchKernel", 400, 5, 2, tid=101), work("mm_backward", 420, 400, 2)]
    events += [api("cudaLaunchKernel", 950, 5, 3, tid=101), work("late", 960, 30, 3)]
    (timeline,) = read(write(tmp_path / "t.json", document(events)))
    found = {one.name: one for one in regions(TimelineMetrics(timeline))}
    assert {name: one.parts["compute"] * one.share for name, one in found.items()} == {
        "forward": pytest.approx(0.2),
        "backward": pytest.approx(0.4),
    }


def test_an_export_keeps_them(tmp_path):
    timeline = _with_ranges(launch_bound()).timeline()
    export(exporters()["chrome"], timeline, str(tmp_path / "out.json"))
    (again,) = read(tmp_path / "out.json")
    assert [again.names[name] for name in again.ranges.name] == [timeline.names[name] for name in timeline.ranges.name]
    assert again.ranges.start_ns.tolist() == timeline.ranges.start_ns.tolist()
    assert len(json.loads((tmp_path / "out.json").read_bytes())["traceEvents"]) > len(again.device)
