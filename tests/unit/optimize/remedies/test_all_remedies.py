"""Remedies are found in their folder and among the entry points of other packages."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from unstall.optimize.batching.loops import NotInLoop
from unstall.optimize.remedies import all_remedies
from unstall.optimize.remedies.base import Exactness, Remedy, first_of, proposals_by_file, proposals_of
from unstall.optimize.source.errors import NameTaken, NotApplicable, SourceError

PLUGIN = """
from unstall.optimize.remedies.base import Remedy

class Mine(Remedy):
    name = "{name}"
    brief = "does what is mine"
    patterns = ("host-bound",)
    exactness = "exact"

    def propose(self, context):
        return []

REMEDY = Mine()
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Installs a package with one entry point of this value, as pip would."""

    def install(value, source):
        (tmp_path / "remedies_of_mine.py").write_text(source)
        info = tmp_path / "mine-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[unstall.remedies]\nmine = {value}\n")
        monkeypatch.syspath_prepend(tmp_path)

    return install


def test_each_remedy_says_what_it_is():
    remedies = all_remedies()
    assert {"vectorize-loop", "cache-samples", "by-hand"} <= remedies.keys()
    for name, remedy in remedies.items():
        assert isinstance(remedy, Remedy) and remedy.name == name and remedy.brief and remedy.needs and remedy.patterns
        assert remedy.exactness in get_args(Exactness)


def test_a_package_adds_a_remedy(plugin):
    plugin("remedies_of_mine:REMEDY", PLUGIN.replace("{name}", "mine"))
    assert all_remedies()["mine"].brief == "does what is mine"


@pytest.mark.parametrize(
    ("value", "source", "why"),
    [
        ("remedies_of_mine:REMEDY", "REMEDY = 3\n", "not of type Remedy"),
        ("remedies_of_mine:REMEDY", "import nothing_of_the_kind\n", "ModuleNotFoundError"),
        ("remedies_of_mine:REMEDY", PLUGIN.replace("{name}", "threads"), "there is already one named 'threads'"),
    ],
)
def test_a_broken_package_is_left_out_and_said(plugin, capsys, monkeypatch, value, source, why):
    monkeypatch.delitem(__import__("sys").modules, "remedies_of_mine", raising=False)
    plugin(value, source)
    assert "mine" not in all_remedies()
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (NotInLoop("line 3: no loop"), "train.py: line 3: no loop"),
        (NameTaken("the file uses the name os"), "train.py: the file uses the name os"),
        (SourceError("train.py cannot be read"), "train.py cannot be read"),
        (NotApplicable("too little time"), "too little time"),
    ],
)
def test_a_refusal_is_said_with_its_file_and_stays_what_it_is(reason, said):
    def refuse(path, number):
        raise reason

    with pytest.raises(type(reason)) as error:
        proposals_by_file([(Path("/program/train.py"), 3)], refuse, "")
    assert str(error.value) == said


def test_the_last_reason_is_given_where_nothing_applies():
    def refuse(number):
        raise NotApplicable(f"not {number}")

    for helper in (proposals_of, first_of):
        with pytest.raises(NotApplicable, match="not 3"):
            helper([1, 2, 3], refuse, "nothing there")
        with pytest.raises(NotApplicable, match="nothing there"):
            helper([], refuse, "nothing there")
