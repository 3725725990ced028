"""Plug-ins: found in a package of ours and by entry points, checked against a protocol, refused in one line."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from unstall import registry


class Greeter:
    name: ClassVar[str]
    extras: ClassVar[tuple[str, ...]]

    def greet(self, whom: str) -> str:
        raise NotImplementedError


BUILT_IN = """
from test_registry_base import Greeter
class English(Greeter):
    name = "english"
    extras = ()
    def greet(self, whom): return "hello " + whom
GREETER = English()
"""
PLUGIN = """
from test_registry_base import Greeter
class German(Greeter):
    name = "german"
    extras = ()
    def greet(self, whom): return "hallo " + whom
german = German()
class Stranger:
    name = "stranger"
stranger = Stranger()
class Bare(Greeter):
    name = "bare"
bare = Bare()
class Numbered(German):
    name = 3
numbered = Numbered()
class Usurper(German):
    name = "english"
usurper = Usurper()
"""


@pytest.fixture
def greeters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `greeters` with one built-in greeter and one helper; `install` adds entry points to it."""
    package = tmp_path / "greeters"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "english.py").write_text(BUILT_IN)
    (package / "helper.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    base = ModuleType("test_registry_base")
    base.Greeter = Greeter
    monkeypatch.setitem(sys.modules, "test_registry_base", base)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in ("greeters", "greeters_plugin")]:
        del sys.modules[name]


def install(folder: Path, **entries: str) -> None:
    (folder / "greeters_plugin.py").write_text(PLUGIN)
    metadata = folder / "greeters_plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: greeters-plugin\nVersion: 1.0\n")
    lines = [f"{name} = greeters_plugin:{value}" for name, value in entries.items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[test.greeters]", *lines]) + "\n")


def load(errors: list[str]) -> dict[str, Greeter]:
    return registry.load("test.greeters", "greeters", Greeter, errors.append)


def test_the_modules_of_the_package_with_the_constant_are_loaded(greeters):
    errors: list[str] = []
    assert list(load(errors)) == ["english"]
    assert errors == []


def test_an_entry_point_of_another_package_is_loaded_after_them(greeters):
    install(greeters, german="german")
    errors: list[str] = []
    found = load(errors)
    assert list(found) == ["english", "german"]
    assert found["german"].greet("world") == "hallo world"
    assert errors == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("stranger", "it is not of type Greeter"),
        ("bare", "it has no 'extras'"),
        ("numbered", "its 'name' is not a string"),
        ("usurper", "there is already one named 'english'"),
        ("German", "it is a class"),
        ("absent", "AttributeError"),
    ],
)
def test_what_does_not_fit_is_ignored_with_one_line_that_names_it(greeters, value, reason):
    install(greeters, bad=value, german="german")
    errors: list[str] = []
    assert list(load(errors)) == ["english", "german"]
    (line,) = errors
    assert "'bad' of greeters-plugin" in line and f"greeters_plugin:{value}" in line
    assert reason in line and "\n" not in line


def test_a_built_in_one_that_does_not_fit_is_an_error_of_ours(greeters):
    (greeters / "greeters" / "broken.py").write_text("GREETER = object()\n")
    with pytest.raises(TypeError, match=r"greeters\.broken is not a valid Greeter: it is not of type Greeter"):
        load([])


def test_by_default_the_line_goes_to_stderr(greeters, capsys):
    install(greeters, bad="stranger")
    registry.load("test.greeters", "greeters", Greeter)
    assert capsys.readouterr().err.startswith("unstall: plug-in 'bad'")
