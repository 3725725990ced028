"""The corpus of changes that `make prove-bench` judges: each still fits its program."""

from __future__ import annotations

import subprocess

import pytest
from benches import importable

with importable():
    from hacks import ENTRY
    from hacks.corpus import corpus

CHANGES = [*corpus()]


def sources(folder):
    return {path.name: path.read_text() for path in folder.glob("*.py")}


@pytest.mark.parametrize("first", sorted({change.key[0] for change in CHANGES}))
def test_changes_apply_and_are_python(first, tmp_path):
    for number, change in enumerate(change for change in CHANGES if change.key.startswith(first)):
        folder = tmp_path / str(number) / "program"
        folder.mkdir(parents=True)
        patch = change.lay_out(folder)
        before = sources(folder)
        assert ENTRY in before
        subprocess.run(["git", "apply", str(patch)], cwd=folder, check=True)
        assert sources(folder) != before, change.key
        for name, text in sources(folder).items():
            compile(text, f"{change.key}/{name}", "exec")


def test_there_are_enough_families_and_none_twice():
    bad, honest = ({change.family for change in CHANGES if change.honest == kind} for kind in (False, True))
    assert len(bad) >= 15 and not bad & honest
    assert len({change.key for change in CHANGES}) == len(CHANGES)
