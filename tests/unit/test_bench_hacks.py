"""The corpus of changes that `make prove-bench` judges: each still fits its program."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
try:
    from hacks.corpus import ENTRY, corpus
finally:
    sys.path.remove(str(BENCH))

CHANGES = [*corpus()]


def sources(folder):
    return {path.name: path.read_text() for path in folder.glob("*.py")}


@pytest.mark.parametrize("program", sorted({change.program for change in CHANGES}), ids=lambda program: program.name)
def test_changes_apply_and_are_python(program, tmp_path):
    assert (program / ENTRY).is_file()
    for change in (change for change in CHANGES if change.program == program):
        changed = tmp_path / change.key
        shutil.copytree(program, changed)
        subprocess.run(["git", "apply", str(change.patch)], cwd=changed, check=True)
        assert sources(changed) != sources(program), change.key
        for name, text in sources(changed).items():
            compile(text, f"{change.key}/{name}", "exec")


def test_there_are_enough_families_and_none_twice():
    bad, honest = ({change.family for change in CHANGES if change.honest == kind} for kind in (False, True))
    assert len(bad) >= 15 and not bad & honest
    assert len({change.key for change in CHANGES}) == len(CHANGES)
