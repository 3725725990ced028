"""The run as a report tells it, and the report of a run in which no step was seen."""

from __future__ import annotations

import jsonschema
import msgspec
import pytest
from factory import measurement, run

from unstall.diagnose.overview import info, without_steps
from unstall.records.measurements import RankMeasurement
from unstall.report.schema import schema


def test_a_run_without_steps_says_so_and_what_to_do():
    report = without_steps(run(notes=["nothing was recorded"]))
    assert (report.run.steps, report.throughput.steps_per_s, report.phases) == (0, None, [])
    assert (report.verdict.pattern, report.verdict.confidence, report.verdict.headroom) == ("no-verdict", "low", 1.0)
    assert "no step was seen" in report.run.notes[0]
    assert "nothing was recorded" in report.run.notes
    assert "unstall.steps" in report.verdict.advice[0]
    assert report.utilization.rss_peak_bytes == 10_000_000
    jsonschema.validate(msgspec.json.decode(report.to_json()), schema())


def test_the_run_is_told_as_it_was():
    told = info(run(), ["a note"], measurement({"forward": 0.1}))
    assert (told.command, told.exit_code, told.notes) == (["train.py", "--epochs", "1"], 0, ["a note"])
    assert told.duration_s == pytest.approx(13.5)
    assert (told.steps, told.warmup_steps, told.world_size) == (200, 5, 1)


def test_a_run_that_unstall_stopped_has_no_exit_code():
    assert info(run(exit_code=-15, stopped=True), [], None).exit_code is None


def test_ranks_are_counted():
    ranks = [RankMeasurement(n, n, 0.1, {}, {}) for n in range(3)]
    assert info(run(), [], measurement({"forward": 0.1}, ranks=ranks)).world_size == 3


def test_a_command_that_is_no_text_is_told_as_far_as_it_goes():
    report = without_steps(run(command=["f\udcfcr.py", "--naïve"]))
    assert report.run.command[1] == "--naïve"
    report.to_json()


def test_a_program_that_ended_with_an_error_is_not_told_to_mark_its_loop():
    report = without_steps(run(exit_code=2))
    assert report.verdict.evidence == ["the program ended with exit code 2 before its first step"]
    assert "mark the loop" not in report.verdict.advice[0]
