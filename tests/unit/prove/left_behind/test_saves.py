"""How often files are saved, in a folder as the sandbox makes it."""

from __future__ import annotations

import os
import sys
import time

import pytest
from sandbox_driver import wait_until

from unstall.prove.left_behind.saves import Saved, Saves

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


def test_saves_in_quick_succession_all_count(tmp_path):
    upper = tmp_path / "layer-1" / "upper1"
    upper.mkdir(parents=True)
    with Saves(tmp_path) as saves:
        write(upper / "a.pt", 200)
    assert saves.of_files([("/program", upper)])["/program/a.pt"].least == 200


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
    assert saves.of_files([("/program", upper)]) == {"/program/a.pt": Saved(0, 1, is_used=True)}


def test_nothing_is_told_where_the_kernel_has_lost_events(tmp_path):
    with Saves(tmp_path) as saves:
        write(tmp_path / "a.pt")
    assert saves.of_files([("/program", tmp_path)])
    saves.is_complete = False
    assert saves.of_files([("/program", tmp_path)]) == {}


def test_only_what_was_written_counts_and_nothing_that_is_empty(tmp_path):
    upper = tmp_path / "layer-1" / "upper1"
    upper.mkdir(parents=True)
    with Saves(tmp_path) as saves:
        for _ in range(3):
            (upper / "opened.pt").open("ab").close()
            time.sleep(0.02)
        write(upper / "opened.pt")
        for _ in range(3):
            (upper / "opened.pt").open("ab").close()
            (upper / "cut.pt").open("wb").close()
            time.sleep(0.02)
    counts = {path: saved.least for path, saved in saves.of_files([("/program", upper)]).items()}
    assert counts == {"/program/opened.pt": 1}


def test_what_the_program_reads_itself_or_moves_is_told_from_what_it_does_not(tmp_path):
    upper = tmp_path / "layer-1" / "upper1"
    upper.mkdir(parents=True)
    with Saves(tmp_path) as saves:
        for name in ("kept", "read", "part"):
            write(upper / name)
        (upper / "read").read_bytes()
        os.replace(upper / "part", upper / "whole")
    used = {path: saved.is_used for path, saved in saves.of_files([("/program", upper)]).items()}
    assert used == {"/program/kept": False, "/program/read": True, "/program/part": True, "/program/whole": False}


def test_what_grows_and_is_not_closed_yet_is_seen(tmp_path):
    upper = tmp_path / "layer-1" / "upper1"
    upper.mkdir(parents=True)
    with Saves(tmp_path) as saves, (upper / "log").open("wb", buffering=0) as log:
        log.write(b"1" * 100)
        wait_until(lambda: saves.grown_to[str(upper / "log")] == 100)
        (upper / "log").unlink()
    assert saves.of_files([("/program", upper)])["/program/log"].grown_to == 100


def test_the_size_at_each_save_is_seen(tmp_path):
    upper = tmp_path / "layer-1" / "upper1"
    upper.mkdir(parents=True)
    with Saves(tmp_path) as saves:
        for size in (10, 20):
            (upper / "part").write_bytes(b"1" * size)
            os.replace(upper / "part", upper / "a.pt")
            wait_until(lambda size=size: saves.sizes[str(upper / "a.pt")][-1:] == [size])
    assert saves.of_files([("/program", upper)])["/program/a.pt"].sizes == (10, 20)
