"""Which runs are compared and judged, and why they cannot be."""

from __future__ import annotations

import platform
from pathlib import Path

import msgspec
import numpy as np
import pytest
from makers import entry, kept

from unstall.benchmark import archive
from unstall.repeat import revision
from unstall.repeat.ledger import Ledger
from unstall.runs import history
from unstall.runs.errors import Refused


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNSTALL_LEDGER", raising=False)


def record(run_id: str, step_s: float = 0.1) -> Path:
    """A kept run in the working directory."""
    folder = Path(".unstall/runs") / run_id
    folder.mkdir(parents=True)
    run = kept(np.full(60, step_s), run_id=run_id)
    archive.write(folder / archive.FILE_NAME, run)
    (folder / archive.REPORT_NAME).write_text("{}")  # says that the run is over
    return folder


def ledger_of(*entries) -> str:
    """A ledger with these runs of the project in the working directory."""
    project = revision.of(Path.cwd()).project
    entries = [msgspec.structs.replace(entry, project=project) for entry in entries]
    with Ledger("ledger.sqlite") as ledger:
        ledger.add(entries)
    return "ledger.sqlite"


def test_the_last_two_runs_are_compared():
    for number in range(3):
        record(f"20260102-03040{number}-aaaaa{number}", step_s=0.1 * (number + 1))
    comparison, problem = history.compare(None, None, None)
    assert (comparison.a.id[-1], comparison.b.id[-1]) == ("1", "2")
    assert comparison.speedup.value == pytest.approx(2 / 3)
    assert problem is None


def test_one_run_is_compared_with_the_last():
    first = record("20260102-030400-aaaaa0").name
    record("20260102-030401-aaaaa1")
    assert history.compare(first, None, None)[0].b.id == "20260102-030401-aaaaa1"
    with pytest.raises(Refused, match="A and B are the same run"):
        history.compare("last", None, None)


def test_a_ledger_that_cannot_be_read_is_told_and_done_without():
    record("20260102-030400-aaaaa0")
    record("20260102-030401-aaaaa1")
    Path("broken.sqlite").write_bytes(b"no database" * 1000)
    comparison, problem = history.compare(None, None, "broken.sqlite")
    assert comparison.speedup is not None and "broken.sqlite" in problem


def test_a_single_run_cannot_be_compared():
    record("20260102-030400-aaaaa0")
    with pytest.raises(Refused, match="no two runs to compare"):
        history.compare(None, None, None)


def test_runs_are_found_by_the_words_of_their_command():
    runs = [entry("a", command=["train.py", "--lr", "1"]), entry("b", command=["eval.py"])]
    assert [run.id for run in history.having(runs, ["train", "--lr"])] == ["a"]
    assert history.having(runs, []) == runs


@pytest.mark.parametrize(("program", "says"), [(None, "no runs yet"), ("train.py", "no runs yet")])
def test_nothing_is_judged_without_runs(program, says):
    with pytest.raises(Refused, match=says):
        history.judge(program, None, price=None, hours_per_week=None)


def test_the_program_that_ran_last_is_judged():
    folder = record("20260102-030400-aaaaa0")
    runs = [
        entry("a", directory=str(folder.absolute()), command=["other.py"], started="2026-01-01T00:00:00Z"),
        entry("b", directory=str(folder.absolute()), started="2026-01-02T00:00:00Z"),
    ]
    stopping, judged = history.judge(None, ledger_of(*runs), price=2.5, hours_per_week=10)
    assert stopping.program == "train.py" and judged.run.id == "20260102-030400-aaaaa0"
    assert stopping.savings.hours_run == 10
    with pytest.raises(Refused, match=r"no run of nope.py yet; there are runs of train.py, other.py"):
        history.judge("nope.py", "ledger.sqlite", price=None, hours_per_week=None)


@pytest.mark.parametrize(("host", "where"), [(platform.node(), "was removed"), ("box", "is on box")])
def test_a_recording_that_is_gone_is_said_to_be(host, where):
    runs = [entry("a", directory="/nowhere", host=host)]
    with pytest.raises(Refused, match=f"the recording of the last run {where}"):
        history.judge(None, ledger_of(*runs), price=None, hours_per_week=None)


def test_a_recording_is_found_where_the_state_was_moved_to():
    runs = [entry("20260102-030400-aaaaa0", directory="/where/it/was/20260102-030400-aaaaa0")]
    record("20260102-030400-aaaaa0")
    _, judged = history.judge(None, ledger_of(*runs), price=None, hours_per_week=None)
    assert judged.run.id == "20260102-030400-aaaaa0"
