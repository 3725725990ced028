"""How a program is started, and what a run has left, as a whole."""

from __future__ import annotations

import pytest

from unstall.prove import runner
from unstall.prove.runner import _absolute, _files_of


class Written:
    """A sandbox in which files lie above a folder."""

    def __init__(self, upper, **files):
        self.upper = upper
        for name, content in files.items():
            (upper / name).write_bytes(content)

    def layers(self):
        return [("/program", self.upper)]


@pytest.fixture
def written(tmp_path):
    return Written(tmp_path, weights=b"\0\1", lock=b"")


def test_all_that_was_written_is_kept_an_empty_file_too(written):
    files = _files_of(["/program/weights", "/program/lock", "/program/gone", "/elsewhere/x"], written)
    assert {str(path): content for path, content in files.items()} == {
        "/program/weights": b"\0\1",
        "/program/lock": b"",
    }


def test_nothing_is_kept_of_what_is_too_much(written, monkeypatch):
    monkeypatch.setattr(runner, "_MOST_KEPT_BYTES", 1)
    assert _files_of(["/program/weights"], written) is None
    assert _files_of(["/program/lock"], written) is not None


def test_words_that_name_files_become_whole_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    (tmp_path / "data").mkdir()
    words = _absolute(["python", "train.py", "--data", "data/", "--epochs", "3"])
    assert words == ["python", str(tmp_path / "train.py"), "--data", str(tmp_path / "data"), "--epochs", "3"]
