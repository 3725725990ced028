"""Whole answers on files with anything wrong in them: there is an answer that adds up, or one clear line."""

from __future__ import annotations

import json

import pytest
from gpu_programs import Program, busy_host, launch_bound, reads_back, reduces, waits_for_data
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kineto_files import document, host, step, work, write

from unstall.diagnose.trace_comparison import USES
from unstall.diagnose.trace_report import report
from unstall.report import trace_view
from unstall.trace.ranks import Ranks
from unstall.trace.readers import read
from unstall.trace.timeline import TraceError

DOCUMENTS = [
    make(steps=2).document(distributedInfo={"rank": 0, "world_size": 2})
    for make in (launch_bound, reads_back, waits_for_data, busy_host, reduces)
]
ODD = st.sampled_from(
    [None, True, -1, 0, 1.5, 1e300, 10**30, -(10**17), "", "x", float("nan"), float("inf"), [], {}, {"a": 1}, 2**63 - 1]
)
FIELDS = st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "correlation", "device", "stream"])
CATEGORIES = st.sampled_from(
    ["kernel", "cpu_op", "cuda_runtime", "user_annotation", "gpu_user_annotation", "gpu_memcpy"]
)


def answer(timelines):
    """The whole report, which must add up."""
    made = report(Ranks.of(timelines), ["t.json"], what_ifs=["launch=0"])
    assert trace_view.page(made).as_text()
    assert json.loads(made.to_json())
    if made.trace is not None:
        assert sum(made.trace.device[use] for use in USES) == pytest.approx(1)
        assert sum(one.share for one in made.trace.regions) <= 1 + 1e-9
        assert all(change.gain > 0 for change in made.trace.what_ifs)
    return made


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(data=st.data())
def test_fields_of_any_type_give_an_answer_that_adds_up(tmp_path, data):
    dirty = json.loads(json.dumps(data.draw(st.sampled_from(DOCUMENTS))))
    events = dirty["traceEvents"]
    for event in data.draw(st.lists(st.sampled_from(events), max_size=30)):
        field = data.draw(FIELDS)
        target = event["args"] if field not in event and isinstance(event.get("args"), dict) else event
        target[field] = data.draw(ODD)
    for event in data.draw(st.lists(st.sampled_from(events), max_size=10)):
        event["cat"] = data.draw(CATEGORIES)
    try:
        answer(read(write(tmp_path / "t.json", dirty)))
    except TraceError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either is right


def test_steps_that_start_at_once_are_one(tmp_path):
    events = [step(1, 0, 0), step(2, 0, 900), step(3, 900, 0), host("aten::mul", 0, 10), work("gemm", 100, 200)]
    made = answer(read(write(tmp_path / "t.json", document(events))))
    assert made.run.steps == 2


def test_a_long_gap_of_another_rank_needs_none_in_the_one_that_is_looked_at():
    quick, slow = Program(), busy_host(gap=60_000.0)
    for _ in range(4):
        with quick.step():
            quick.launch(50.0)
    made = answer([quick.timeline(), slow.timeline()])
    assert "host-bound" in [one.pattern for one in made.findings]


def test_work_that_is_outside_of_all_steps(tmp_path):
    events = [work("early", 0, 100), step(1, 1000, 900), host("aten::mul", 1100, 10)]
    made = answer(read(write(tmp_path / "t.json", document(events))))
    assert made.trace.device["busy"] == 0
    assert made.trace.critical_operators == {}


@pytest.mark.parametrize("cat", ["kernel", "gpu_memcpy", "gpu_memset"])
def test_a_device_alone(tmp_path, cat):
    events = [work("w", 100.0 * n, 60, cat=cat, bytes=64) for n in range(30)]
    made = answer(read(write(tmp_path / "t.json", document(events))))
    assert made.trace.device["busy"] == pytest.approx(0.6, abs=0.02)
    assert any("no launch call" in note for note in made.run.notes)
