"""Recordings are removed by any of the limits, and kept by a dry run."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from unstall.runs.prune import ArchivedRun, choose, kept_runs, prune

_RUNS = [ArchivedRun(Path(f"run{number}"), 100, 1000.0 * number) for number in range(1, 6)]


@pytest.fixture
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


@pytest.mark.parametrize(
    "limits, left",
    [
        ({"keep": 2}, 2),
        ({"keep": 0}, 0),
        ({"max_bytes": 250}, 2),
        ({"max_bytes": 10_000}, 5),
        ({"older_than_s": 2500}, 3),
        ({"keep": 4, "older_than_s": 1500}, 2),
        ({}, 5),
    ],
)
def test_the_newest_stay(limits, left):
    removed = choose(_RUNS, now=5000.0, **limits)
    assert removed == _RUNS[: 5 - left]


def test_a_huge_run_does_not_push_out_the_small_ones():
    runs = [ArchivedRun(Path("old"), 10, 1.0), ArchivedRun(Path("huge"), 1000, 2.0), ArchivedRun(Path("new"), 10, 3.0)]
    assert choose(runs, max_bytes=100) == [runs[1]]


def test_a_run_that_vanishes_meanwhile_is_left_out(tmp_path, monkeypatch):
    for name in ("20260101-000000-aaaaaa", "20260102-000000-bbbbbb"):
        (tmp_path / ".unstall" / "runs" / name).mkdir(parents=True)
        (tmp_path / ".unstall" / "runs" / name / "report.json").write_text("{}")
    lstat = Path.lstat

    def gone(path):
        if "aaaaaa" in str(path) and path.name == "report.json":
            raise FileNotFoundError(path)
        return lstat(path)

    monkeypatch.setattr(Path, "lstat", gone)
    assert [run.path.name for run in kept_runs(tmp_path)] == ["20260102-000000-bbbbbb"]


def test_only_finished_runs_of_ours_are_looked_at(tmp_path):
    runs = tmp_path / ".unstall" / "runs"
    for name in (
        "20260101-000000-aaaaaa",
        "20260102-000000-bbbbbb",
        "20250101-000000-cccccc",
        "notes",
        "20260103-000000-dddddd",
    ):
        (runs / name).mkdir(parents=True)
        (runs / name / "rec-1.bin").write_bytes(bytes(10))
    for name in ("20260101-000000-aaaaaa", "notes", "20260103-000000-dddddd"):
        (runs / name / "report.json").write_text("{}")
    long_ago = time.time() - 10 * 86400
    os.utime(runs / "20250101-000000-cccccc" / "rec-1.bin", (long_ago, long_ago))
    (runs / "20260104-000000-eeeeee").symlink_to(runs / "notes")
    found = kept_runs(tmp_path)
    assert [(run.path.name[-6:], run.bytes) for run in found] == [("cccccc", 10), ("aaaaaa", 12), ("dddddd", 12)]


def test_no_runs_at_all(tmp_path):
    assert kept_runs(tmp_path) == []
