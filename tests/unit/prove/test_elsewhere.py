"""Where a program writes that is started in another folder."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from unstall.prove.effects import STDOUT, Content, Effects
from unstall.prove.elsewhere import PLAN, absolute, as_usual, first_difference, in_folder
from unstall.prove.runner import WholeRun

HERE = Path("/program")
THERE = Path(PLAN["elsewhere"]["folder"])


def run(*paths):
    return WholeRun(1.0, False, 0.0, Effects(0, "", {str(path): Content.of(b"1") for path in (STDOUT, *paths)}))


def test_words_that_name_files_become_whole_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    (tmp_path / "data").mkdir()
    words = absolute(["python", "train.py", "--data", "data/", "--epochs", "3"])
    assert words == ["python", str(tmp_path / "train.py"), "--data", str(tmp_path / "data"), "--epochs", "3"]


def test_files_of_the_working_folder_are_known_by_their_paths_in_it():
    assert as_usual(run(HERE / "out" / "model.pt", "/other/x.pt", "/program-2/y.pt"), HERE) == {"out/model.pt"}
    assert as_usual(run(HERE / "events.out.tfevents.1795735460.vm.1.0"), HERE) == {"events.out.tfevents.#.vm.#.#"}


def test_what_is_there_after_the_originals_run_alone_is_different():
    original, changed = run(THERE / "a.pt", THERE / "b.pt"), run(THERE / "b.pt", HERE / "a.pt")
    assert in_folder(changed) == {"b.pt"}
    assert first_difference(original, changed).place == "a.pt"
    assert first_difference(changed, original) is None


def test_the_folder_is_one_that_is_not_there():
    assert THERE.parent == Path(tempfile.gettempdir()) and not os.path.exists(THERE)
