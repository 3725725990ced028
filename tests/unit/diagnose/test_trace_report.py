"""From timelines to the report, its one screen, and comparisons."""

from __future__ import annotations

import json

import jsonschema
import pytest
from gpu_programs import Program, compute_bound, copies, launch_bound, reads_back, reduces, waits_for_data
from kineto_files import api, document, step, work, write

from unstall.diagnose.trace_comparison import USES, compare
from unstall.diagnose.trace_report import pattern_of_use, report
from unstall.records.report import Report
from unstall.report import trace_compare_view, trace_view
from unstall.report.schema import schema
from unstall.trace.hosttime import phases
from unstall.trace.metrics import TimelineMetrics
from unstall.trace.ranks import Ranks
from unstall.trace.readers import read
from unstall.trace.regions import regions
from unstall.trace.timeline import TraceError

PROGRAMS = [launch_bound(), compute_bound(), reads_back(), waits_for_data(), copies(), reduces()]


@pytest.fixture(scope="module", params=PROGRAMS)
def made(request) -> Report:
    return report(Ranks.of([request.param.timeline()]), ["trace.json.gz"], what_ifs=["aten::mul=0.5x"])


def test_it_keeps_the_contract(made):
    content = json.loads(made.to_json())
    jsonschema.validate(content, schema(), jsonschema.Draft202012Validator)
    assert content["kind"] == "trace"
    assert sum(phase["share"] for phase in content["phases"]) == pytest.approx(1, abs=0.02)
    assert sum(content["trace"]["device"][name] for name in USES) == pytest.approx(1)
    assert content["trace"]["what_ifs"][0]["what_if"] == "aten::mul=0.5x"
    assert len(content["trace"]["steps"]) == content["run"]["steps"] == 4
    assert Report.from_json(made.to_json()).trace.kernels == made.trace.kernels


@pytest.mark.parametrize("width", [40, 80, 100, 200])
def test_it_fits_a_screen(made, width):
    lines = trace_view.page(made, width).as_text().splitlines()
    assert all(len(line) <= min(width, 120) for line in lines if "unstall trace " not in line)
    if width >= 80:
        assert len(lines) <= 40
    assert made.verdict.pattern in lines[1]


def test_a_trace_without_a_device_says_so():
    program = Program()
    for _ in range(3):
        with program.step():
            program.busy(100.0, "aten::mm", "cpu_op")
    made = report(Ranks.of([program.timeline()]), ["x.json"])
    jsonschema.validate(json.loads(made.to_json()), schema(), jsonschema.Draft202012Validator)
    assert made.trace is None
    assert "no GPU activity" in made.verdict.evidence[0]
    assert "no GPU activity" in trace_view.page(made).as_text()


def test_an_unknown_what_if_is_an_error():
    with pytest.raises(TraceError):
        report(Ranks.of([launch_bound().timeline()]), [], what_ifs=["aten::nothing=0"])


def test_phases_of_the_main_thread():
    program = Program()
    for _ in range(3):
        with program.step():
            program.batch(1000.0)
            program.launch(50.0)
            program.copy(500.0, "HtoD", size=1_000_000)
            with program.inside("Optimizer.step#SGD.step", "user_annotation"):
                program.launch(20.0)
            program.sync()
    found = {phase.name: phase.share for phase in phases(TimelineMetrics(program.timeline()))}
    assert sum(found.values()) == pytest.approx(1)
    assert found["data_wait"] == pytest.approx(1000 / program.step_us(), rel=0.02)
    assert found["transfer"] > found["forward"] > 0
    assert found["optimizer"] > 0


def test_each_part_of_a_program_has_its_pattern():
    program = Program()
    for _ in range(3):
        with program.step():
            with program.inside("encode", "user_annotation"):
                for _ in range(10):
                    program.launch(400.0)
            program.sync()
            with program.inside("decode", "user_annotation"):
                for _ in range(60):
                    program.launch(3.0, before=25.0)
        program.sync()
    found = {one.name: one.pattern for one in regions(TimelineMetrics(program.timeline()), pattern_of_use())}
    assert found == {"encode": "compute-bound", "decode": "overhead-bound"}


def test_a_comparison():
    before, after = waits_for_data(wait=3000.0), waits_for_data(wait=1000.0)
    found = compare(before.timeline(), after.timeline())
    assert found.ratio == pytest.approx(before.step_us() / after.step_us(), rel=0.02)
    changed = max(found.uses, key=lambda one: abs(one.after_s - one.before_s))
    assert changed.name == "idle_loader"
    assert changed.after_s - changed.before_s == pytest.approx(-0.002, rel=0.05)
    assert all(one.before_s == pytest.approx(one.after_s) for one in found.operators)
    shown = trace_compare_view.page(found, 100).as_text()
    assert "faster" in shown and "idle: data" in shown
    assert "idle: data" in trace_compare_view.markdown(found)


def test_kernels_that_no_operator_launched_are_told_from_those_of_before(tmp_path):
    events = [
        step(1, 0, 900),
        api("cudaLaunchKernel", 10, 5, 1),
        work("triton_poi", 20, 100, 1),
        work("old", 5, 10, 99),
    ]
    (timeline,) = read(write(tmp_path / "t.json", document(events)))
    made = report(Ranks.of([timeline]), [])
    assert {one.name for one in made.trace.operators} == {
        "(launched outside any operator)",
        "(launched before the trace)",
    }


def test_the_next_command_names_an_operator_that_a_what_if_can_be_asked_of(tmp_path):
    events = [step(1, 0, 900)]
    for number in range(30):
        events += [
            api("cudaLaunchKernel", 10 + number, 1, 1 + number),
            work("triton", 20 + 29 * number, 28, 1 + number),
        ]
    (timeline,) = read(write(tmp_path / "t.json", document(events)))
    made = report(Ranks.of([timeline]), ["t.json"])
    assert made.trace.device["compute"] > 0.9
    assert "unstall trace t.json --what-if compute=0.5x" in trace_view.page(made).as_text()
