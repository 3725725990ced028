"""What a trial wrote is read as plain values only."""

from __future__ import annotations

import pickle

import pytest

from unstall.optimize.equivalence import read
from unstall.optimize.sameness import ObservedTensor

RECORD = ("loss.0", 0, "float32", (1,), b"d", b"\0\0\0\0")


class Trap:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (self.path.touch, ())


def test_records_are_read_up_to_the_first_that_is_none(tmp_path):
    path = tmp_path / "observed.bin"
    path.write_bytes(pickle.dumps(RECORD) + pickle.dumps(Trap(tmp_path / "sprung")) + pickle.dumps(RECORD))
    assert [tensor.what for tensor in read(path)] == ["loss.0"]
    assert not (tmp_path / "sprung").exists()


def test_damaged_and_odd_files_hold_no_more(tmp_path):
    path = tmp_path / "observed.bin"
    for content in (b"", b"\x80\x05junk", pickle.dumps(3), pickle.dumps(("too", "few"))):
        path.write_bytes(content)
        assert list(read(path)) == []
    assert list(read(tmp_path / "none")) == []


def test_an_error_of_ours_is_not_taken_for_the_end_of_a_file(tmp_path, monkeypatch):
    def broken(*record):
        raise TypeError("ours")

    path = tmp_path / "observed.bin"
    path.write_bytes(pickle.dumps(RECORD))
    monkeypatch.setattr(ObservedTensor, "__init__", broken)
    with pytest.raises(TypeError, match="ours"):
        list(read(path))
