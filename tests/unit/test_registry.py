"""What can be added: modules of a package of ours, and entry points of other packages."""

from __future__ import annotations

import importlib
import sys

import pytest

from unstall.registry import load


class Thing:
    def __init__(self, name):
        self.name = name


@pytest.fixture
def things(tmp_path, monkeypatch):
    """A package ``things`` with one module, and a way to install distributions with entry points beside it."""
    package = tmp_path / "things"
    package.mkdir()
    (package / "__init__.py").write_text("class Thing:\n    def __init__(self, name):\n        self.name = name\n")
    (package / "ours.py").write_text("from things import Thing\nTHING = Thing('ours')\n")
    (package / "helper.py").write_text("nothing = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] in ("things", "theirs")]:
        del sys.modules[name]


def install(folder, source, point="theirs:THING"):
    (folder / "theirs.py").write_text(source)
    info = folder / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[test.things]\ntheirs = {point}\n")
    importlib.invalidate_caches()


def loaded():
    return load("test.things", "things", importlib.import_module("things").Thing)


def test_ours_are_found_by_their_module(things):
    assert list(loaded()) == ["ours"]


def test_theirs_come_after_ours(things):
    install(things, "from things import Thing\nTHING = Thing('theirs')\n")
    assert list(loaded()) == ["ours", "theirs"]


@pytest.mark.parametrize(
    ("source", "point", "why"),
    [
        ("raise RuntimeError('no licence')", "theirs:THING", "no licence"),
        ("THING = 7", "theirs:THING", "7 is no Thing"),
        ("THING = 7", "theirs:OTHER", "OTHER"),
        ("", "nowhere:THING", "nowhere"),
        ("from things import Thing\nTHING = Thing('ours')\n", "theirs:THING", "'ours' already"),
    ],
)
def test_one_that_is_broken_is_left_out_and_named(things, capsys, source, point, why):
    install(things, source, point)
    assert list(loaded()) == ["ours"]
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "test.things" in line and point in line and why in line
