"""What a quarter of an hour has found is not lost where a file cannot be written."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from unstall.cli import optimize
from unstall.report.layout import Page

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no device here that is always full")
def test_a_patch_that_cannot_be_written_is_given_all_the_same(tmp_path, monkeypatch, capfdbinary):
    monkeypatch.setattr(optimize, "unified", lambda sources, root: b"--- a/train.py\n")
    monkeypatch.setattr(optimize, "_where_it_stands", lambda result: [])
    monkeypatch.setattr(optimize.view, "page", lambda *arguments: Page(80))
    found = SimpleNamespace(root=tmp_path)
    result = SimpleNamespace(best=SimpleNamespace(sources=None), kept=[], why_stopped="the budget is spent", total=None)
    made = SimpleNamespace(to_json=lambda: b"{}", run=SimpleNamespace(notes=[]))
    failures = optimize._give(found, result, made, patch=FULL, json=tmp_path / "report.json", with_file=None)
    assert failures == ["cannot write /dev/full: No space left on device: the patch is on stdout"]
    assert (tmp_path / "report.json").read_bytes() == b"{}"
    assert capfdbinary.readouterr().out == b"--- a/train.py\n"
