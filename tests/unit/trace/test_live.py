"""The GPU windows of a run, joined with its report."""

from __future__ import annotations

import json

import pytest
from gpu_programs import Program, launch_bound, waits_for_data

from unstall.benchmark.archive import Archive
from unstall.records.report import Culprit, Finding, Report
from unstall.report import html, run_view
from unstall.trace.live import join
from unstall.trace.ranks import Ranks
from unstall.trace.report import report


def _finding(pattern, headroom, culprit=None) -> Finding:
    return Finding(
        pattern=pattern,
        headroom=headroom,
        headroom_known_by="estimated",
        confidence="medium",
        evidence=[f"the run saw {pattern}"],
        advice=[],
        culprit=culprit,
    )


@pytest.fixture
def run() -> Report:
    """As of `unstall run`: without anything of a device yet."""
    made = report(Ranks.of([launch_bound().timeline()]), ["train.py"])
    made.kind, made.trace, made.run.notes = "run", None, []
    line = Culprit(function="train", file="train.py", line=9, share=0.5)
    made.findings = [
        _finding("compute-bound", 1.3),
        _finding("input-bound", 1.1, line),
        _finding("callback-bound", 1.2),
    ]
    made.verdict = made.findings[0]
    return made


def _record(folder, program: Program, pid=1) -> None:
    (folder / f"gpu-{pid}.json").write_text(json.dumps(program.document()))


def test_without_a_window_nothing_changes(run, tmp_path):
    before = run.to_json()
    assert join(run, tmp_path).to_json() == before


def test_the_window_has_the_verdict_and_the_run_its_line(run, tmp_path):
    _record(tmp_path, waits_for_data())
    made = join(run, tmp_path, [0.003, 0.005])
    assert made.verdict.pattern == "input-bound"
    assert made.verdict.culprit.file == "train.py"
    assert made.trace.device["idle_loader"] > 0.5
    assert made.trace.device_step_s == pytest.approx(0.004)
    assert made.findings[0] is made.verdict
    assert [one.pattern for one in made.findings].count("input-bound") == 1
    assert "callback-bound" in [one.pattern for one in made.findings]


def test_what_only_the_run_sees_stands_first_if_it_is_worth_more(run, tmp_path):
    run.findings.insert(0, _finding("callback-bound", 9.0))
    _record(tmp_path, launch_bound())
    assert join(run, tmp_path).verdict.pattern == "callback-bound"


def _with_parts() -> Program:
    program = Program()
    for _ in range(5):
        with program.step():
            with program.inside("forward", "user_annotation"):
                for _ in range(30):
                    program.launch(3.0)
            with program.inside("loss", "user_annotation"):
                program.launch(400.0)
        program.sync()
    return program


@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_screen_of_a_run_has_the_device_and_its_parts(run, tmp_path, width):
    _record(tmp_path, _with_parts())
    screen = run_view.page(join(run, tmp_path, [0.003, 0.005]), width).as_text()
    lines = screen.splitlines()
    assert len(lines) <= 40
    assert all(len(line) <= width for line in lines if "unstall " not in line)
    assert "4 ms a step by CUDA events" in screen
    assert "the host submits small work" in " ".join(screen.split())
    parts = [line.split() for line in lines if "overhead-bound" in line or "compute-bound" in line]
    assert any("forward" in part and "overhead-bound" in part for part in parts)
    assert any("loss" in part and "compute-bound" in part for part in parts)


def test_a_run_without_a_device_has_no_such_lines(run):
    assert not [
        line for line in run_view.page(run).as_text().splitlines() if line.startswith(("GPU", "Parts", "What if"))
    ]


def test_the_page_of_a_run_has_the_device_and_its_parts(run, tmp_path):
    _record(tmp_path, _with_parts())
    made = html.page(Archive(report=join(run, tmp_path)))
    assert "The program’s parts" in made
    for name in ("forward", "loss"):
        assert f"<code>{name}</code>" in made


@pytest.mark.parametrize("content", [b"", b"no trace", b'{"traceEvents": []}'])
def test_a_window_that_cannot_be_read_is_noted(run, tmp_path, content):
    (tmp_path / "gpu-7.json").write_bytes(content)
    made = join(run, tmp_path)
    assert made.verdict.pattern == "compute-bound"
    assert made.trace is None
    assert any("GPU window" in note for note in made.run.notes)
