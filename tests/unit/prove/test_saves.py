"""How often files are saved, in a folder as the sandbox makes it."""

from __future__ import annotations

import os
import sys

import pytest
from sandbox_driver import wait_until

from unstall.prove.saves import Saved, Saves

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's")


def write(path, times=1):
    for number in range(times):
        path.write_bytes(bytes([number]))


def test_each_save_counts(tmp_path):
    upper = tmp_path / "layer-1" / "upper1"
    (upper / "out").mkdir(parents=True)
    with Saves(tmp_path) as saves:
        write(upper / "a.pt", 3)
        write(upper / "out" / "b.pt", 2)
        for _ in range(4):
            write(upper / "part")
            os.replace(upper / "part", upper / "c.pt")
    counts = {path: saved.least for path, saved in saves.of_files([("/program", upper)]).items()}
    assert counts == {"/program/a.pt": 3, "/program/out/b.pt": 2, "/program/part": 4, "/program/c.pt": 4}


def test_folders_that_are_made_meanwhile_are_watched_too(tmp_path):
    upper = tmp_path / "layer-1" / "upper1"
    with Saves(tmp_path) as saves:
        (upper / "deep").mkdir(parents=True)

        def is_seen():
            write(upper / "deep" / "a.pt")
            return any(saved.least for saved in saves.of_files([("/program", upper)]).values())

        wait_until(is_seen)
    assert set(saves.of_files([("/program", upper)])) == {"/program/deep/a.pt"}


def test_what_lies_elsewhere_or_is_only_read_does_not_count(tmp_path):
    upper = tmp_path / "layer-1" / "upper1"
    upper.mkdir(parents=True)
    write(upper / "a.pt")
    with Saves(tmp_path) as saves:
        (upper / "a.pt").read_bytes()
        write(tmp_path / "layer-1" / "upper1.of")
    # It was there when its folder was seen first: nobody knows whether it was written before that.
    assert saves.of_files([("/program", upper)]) == {"/program/a.pt": Saved(0, 1)}


def test_nothing_is_told_where_the_kernel_has_lost_events(tmp_path):
    with Saves(tmp_path) as saves:
        write(tmp_path / "a.pt")
    assert saves.of_files([("/program", tmp_path)])
    saves.is_complete = False
    assert saves.of_files([("/program", tmp_path)]) == {}
