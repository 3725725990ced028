"""Which files may be changed: those below the root, and those of packages that are named."""

from __future__ import annotations

import pytest

from unstall.optimize.patch.apply import remarks
from unstall.optimize.patch.diff import unified
from unstall.optimize.program import find
from unstall.optimize.source.files import Sources


@pytest.fixture
def layout(tmp_path, monkeypatch):
    """A script, a library installed for it, and one in a folder beside it."""
    files = {
        "script": tmp_path / "run" / "train.py",
        "installed": tmp_path / "env" / "site-packages" / "fast_loader" / "inner" / "read.py",
        "other": tmp_path / "env" / "site-packages" / "other" / "read.py",
        "beside": tmp_path / "lib" / "models" / "net.py",
    }
    for path in files.values():
        path.parent.mkdir(parents=True)
        path.write_text("x = 1\n")
    (tmp_path / "lib" / "models" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path / "run")
    return files


def owned(program, layout):
    return {name for name, path in layout.items() if program.owns(path)}


def test_packages_are_changed_only_if_they_are_named(layout):
    assert owned(find(["train.py"]), layout) == {"script"}
    assert owned(find(["train.py"], ["fast-loader"]), layout) == {"script", "installed"}
    assert owned(find(["train.py"], ["fast_loader", "models"]), layout) == {"script", "installed", "beside"}


def test_files_that_are_called_the_same_have_names_of_their_own(layout, tmp_path):
    program = find(["train.py"], ["fast_loader", "models"])
    assert program.name_of(layout["script"]) == "train.py"
    assert program.name_of(layout["installed"]) == "fast_loader/inner/read.py"
    assert program.name_of(layout["beside"]) == "models/net.py"
    assert program.name_of(tmp_path / "elsewhere.py") == str(tmp_path / "elsewhere.py")


def test_the_patch_of_a_package_is_against_its_source(layout):
    program = find(["train.py"], ["fast_loader", "models"])
    sources = Sources({path: b"x = 2\n" for name, path in layout.items() if name != "other"})
    patch = unified(sources, program.folder_of).decode()
    for name in ("train.py", "fast_loader/inner/read.py", "models/net.py"):
        assert f"--- a/{name}\n+++ b/{name}\n" in patch
    notes = remarks(program, sources)
    assert len(notes) == 3 and "fast_loader/inner/read.py is of a package" in notes[0]
