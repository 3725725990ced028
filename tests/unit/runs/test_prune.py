"""Recordings are removed by any of the limits, and kept by a dry run."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.runs.prune import prune


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        folder = tmp_path / ".unstall" / "runs" / f"20260102-03040{number}-aaaaaa"
        folder.mkdir(parents=True)
        (folder / "report.json").write_bytes(b"x" * 100)
    return tmp_path / ".unstall" / "runs"


def limits(**given):
    return {"keep": None, "older_than_s": None, "max_bytes": None, "dry_run": False, **given}


def test_the_newest_are_kept(runs):
    pruned = prune(**limits(keep=1))
    assert (pruned.runs, pruned.removed, pruned.freed_bytes, pruned.left_bytes) == (3, 2, 200, 100)
    assert [path.name for path in runs.iterdir()] == ["20260102-030402-aaaaaa"]


def test_a_dry_run_removes_nothing(runs):
    assert prune(**limits(keep=0, dry_run=True)).removed == 3
    assert len(list(runs.iterdir())) == 3


def test_without_a_limit_a_gigabyte_is_kept(runs):
    assert prune(**limits()).removed == 0


def test_what_cannot_be_removed_is_named(runs, monkeypatch):
    def refuse(path: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("shutil.rmtree", refuse)
    pruned = prune(**limits(keep=2))
    assert pruned.removed == 0 and pruned.left_bytes == 300
    assert pruned.problems[0].endswith("was not removed: Operation not permitted")
