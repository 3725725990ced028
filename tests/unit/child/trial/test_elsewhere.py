"""A program that is started in another folder."""

from __future__ import annotations

from pathlib import Path

from unstall.child.trial import elsewhere


def test_the_first_process_begins_in_the_folder_and_others_where_they_are_started(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = {"folder": str(tmp_path / "elsewhere")}
    assert elsewhere.targets(plan, "") == []
    assert Path.cwd() == tmp_path / "elsewhere"
    monkeypatch.chdir(tmp_path)
    assert elsewhere.targets(plan, "") == []
    assert Path.cwd() == tmp_path
