"""What a run has left, as a whole."""

from __future__ import annotations

import pytest

from unstall.prove import runner
from unstall.prove.runner import _files_of


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
