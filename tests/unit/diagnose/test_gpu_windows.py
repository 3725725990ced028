"""The GPU windows of a run, and the report that they and the run make together."""

from __future__ import annotations

import json

import pytest
from factory import CALL, NEXT, Source, measurement, run, stack
from gpu_programs import Program, launch_bound, waits_for_data

from unstall.benchmark.archive import Archive
from unstall.diagnose.gpu_windows import read
from unstall.diagnose.summary import report
from unstall.records.report import Report
from unstall.report import html, run_view

WAITS = {"data_wait": 0.03, "forward": 0.03, "backward": 0.04}


@pytest.fixture
def code(tmp_path):
    return Source(
        tmp_path / "train.py",
        "def fetch(path):\n    return open(path).read()  # read\n\n\ndef main():\n    for batch in loader:  # ask\n        pass\n",
    )


def joined(folder, code, phases=None, step_s=()) -> Report:
    """The report of a run whose batches ``fetch`` makes, with the windows in a folder."""
    samples = [stack(code.at("main", "# ask"), NEXT, code.at("fetch", "# read"), count=300), stack(CALL, count=300)]
    return report(run(), measurement(phases or WAITS, samples=samples), read(folder, step_s))


def _record(folder, program: Program, pid=1) -> None:
    (folder / f"gpu-{pid}.json").write_text(json.dumps(program.document()))


def test_without_a_window_there_is_nothing_of_a_device(code, tmp_path):
    assert read(tmp_path) is None
    made = joined(tmp_path, code)
    assert made.trace is None
    assert not [
        line for line in run_view.page(made).as_text().splitlines() if line.startswith(("GPU", "Parts", "What if"))
    ]


def test_the_window_has_the_verdict_and_the_run_its_line(code, tmp_path):
    _record(tmp_path, waits_for_data())
    made = joined(tmp_path, code, step_s=[0.003, 0.005])
    assert made.verdict.pattern == "input-bound"
    assert made.verdict.culprit.file == code.file
    assert made.verdict.cause == "storage", "the trace knows only that the main process makes the batches"
    assert "persistent" not in made.verdict.expected_gain.remedy
    assert made.trace.device["idle_loader"] > 0.5
    assert made.trace.device_step_s == pytest.approx(0.004)
    assert made.findings[0] is made.verdict
    assert [one.pattern for one in made.findings].count("input-bound") == 1


def test_what_only_the_run_sees_stands_first_if_it_is_worth_more(code, tmp_path):
    _record(tmp_path, launch_bound())
    made = joined(tmp_path, code, {"forward": 0.01, "backward": 0.02, "callback": 0.5})
    assert made.verdict.pattern == "callback-bound"
    assert "overhead-bound" in [one.pattern for one in made.findings]


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
def test_the_screen_of_a_run_has_the_device_and_its_parts(code, tmp_path, width):
    _record(tmp_path, _with_parts())
    screen = run_view.page(joined(tmp_path, code, step_s=[0.003, 0.005]), width).as_text()
    lines = screen.splitlines()
    assert len(lines) <= 42
    assert all(len(line) <= width for line in lines if "unstall " not in line)
    assert "4 ms a step by CUDA events" in screen
    assert "the host submits small operations" in " ".join(screen.split())
    parts = [line.split() for line in lines if "overhead-bound" in line or "compute-bound" in line]
    assert any("forward" in part and "overhead-bound" in part for part in parts)
    assert any("loss" in part and "compute-bound" in part for part in parts)


def test_the_page_of_a_run_has_the_device_and_its_parts(code, tmp_path):
    _record(tmp_path, _with_parts())
    made = html.page(Archive(report=joined(tmp_path, code)))
    assert "The program’s parts" in made
    for name in ("forward", "loss"):
        assert f"<code>{name}</code>" in made


@pytest.mark.parametrize("content", [b"", b"no trace", b'{"traceEvents": []}'])
def test_a_window_that_cannot_be_read_is_noted(code, tmp_path, content):
    (tmp_path / "gpu-7.json").write_bytes(content)
    made = joined(tmp_path, code)
    assert made.trace is None
    assert any("GPU window" in note for note in made.run.notes)
