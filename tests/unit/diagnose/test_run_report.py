"""A command run under observation, and what the report says of how it went."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import jsonschema
import msgspec
import pytest

import unstall
from unstall.benchmark import rundir
from unstall.benchmark.command import CommandError
from unstall.benchmark.launcher import ProgramExit
from unstall.diagnose import run_report as pipeline
from unstall.records.observations import Observation
from unstall.report.schema import schema


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made_from(folder, *, infos=(), status=0, **seen):
    """The report of a run whose processes told these facts."""
    directory = rundir.make(folder)
    for pid, facts in enumerate(infos, 100):
        lines = [json.dumps(fact) for fact in facts]
        (directory.path / f"info-{pid}.jsonl").write_text("\n".join(lines))
    outcome = ProgramExit(status, Observation(1.0, 3.0, **seen))
    found = pipeline.make_report(["train.py"], directory, datetime.now(timezone.utc), outcome)
    jsonschema.validate(msgspec.json.decode(found.report.to_json()), schema())
    assert found.measured is None
    return found.report, directory


def notes(folder, **more):
    return "\n".join(made_from(folder, **more)[0].run.notes)


PROCESS = {"kind": "process", "pid": 100, "native": True, "python": "3.12.1"}


def test_a_program_that_recorded_nothing_says_so(folder):
    report, directory = made_from(folder)
    assert report.run.id == directory.id
    assert report.run.duration_s == 2.0
    assert any("nothing was recorded" in note for note in report.run.notes)


@pytest.mark.parametrize(
    "more, says",
    [
        ({"status": -9}, "ended by signal 9"),
        ({"status": 3}, "ended with exit code 3"),
        ({"status": 1}, "another Python"),
        (
            {"infos": [[PROCESS, {"kind": "error", "what": "seam torch.optim", "error": "odd"}]]},
            "seam torch.optim: odd",
        ),
        ({"infos": [[{**PROCESS, "native": False}]]}, "C recorder is not built"),
    ],
)
def test_what_went_wrong_is_noted(folder, more, says):
    assert says in notes(folder, **more)


def test_a_run_that_unstall_stopped_is_no_failure(folder):
    report, _ = made_from(folder, status=-15, stopped=True)
    assert report.run.exit_code is None
    assert "signal" not in "\n".join(report.run.notes)


def test_a_bootstrap_that_failed_is_noted(folder):
    directory = rundir.make(folder)
    (directory.path / "bootstrap-error.txt").write_text("ImportError: no such thing\nmore\n")
    outcome = ProgramExit(0, Observation(1.0, 2.0))
    report = pipeline.make_report(["train.py"], directory, datetime.now(timezone.utc), outcome).report
    assert any("ImportError: no such thing" in note for note in report.run.notes)


def test_the_programs_own_python_and_torch_are_told(folder):
    facts = [PROCESS, {"kind": "torch", "version": "2.9.9", "threads": 3}]
    environment = made_from(folder, infos=[facts])[0].run.environment
    assert (environment["torch"], environment["torch_threads"], environment["python"]) == ("2.9.9", 3, "3.12.1")


def test_the_same_note_is_told_once(folder):
    facts = [PROCESS, {"kind": "error", "what": "seam x", "error": "odd"}]
    report, _ = made_from(folder, infos=[facts, facts, facts])
    assert sum("seam x" in note for note in report.run.notes) == 1


# ---------------------------------------------------------------- commands


def test_a_command_is_run_and_reported_and_leaves_nothing(folder, capfd):
    (folder / "hello.py").write_text("import sys; print('out'); sys.exit(3)\n")
    report = unstall.run(["hello.py"], sampling=False)
    assert (report.run.exit_code, report.run.command, report.run.steps) == (3, ["hello.py"], 0)
    out, err = capfd.readouterr()
    assert (out, err) == ("out\n", "")
    assert [path.name for path in folder.iterdir()] == ["hello.py"]
    assert rundir.list_runs() == []


def test_what_cannot_be_started_is_an_error_and_leaves_nothing(folder):
    with pytest.raises(CommandError, match="no such file"):
        unstall.run(["missing.py"])
    assert list(folder.iterdir()) == []
