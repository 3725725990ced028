"""Files for the time of a run whose name is the same in every run."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.prove.left_behind.effects import Content, Effects
from unstall.prove.left_behind.saves import Saved
from unstall.prove.runner import WholeRun
from unstall.prove.scratch import shared_by_runs
from unstall.prove.timing import ProofPair
from unstall.prove.trees import Sides

SIDES = Sides(changed={Path("/tmp/program/train.py"): b""})


def run(*saved, left=()):
    effects = Effects(0, "", {path: Content.of(b"1") for path in left})
    return WholeRun(1.0, False, 0.0, effects, saves={path: Saved(1, 1) for path in saved})


def shared(*changed, original=()):
    return shared_by_runs([ProofPair(run(*original), each) for each in changed], SIDES)


def test_a_file_that_each_run_writes_for_its_own_time_is_named():
    both = run("/tmp/rows.bin", "/tmp/a1"), run("/tmp/rows.bin", "/tmp/b2")
    assert shared(*both).startswith("each of its runs writes /tmp/rows.bin, which two runs at once would share")
    assert shared(*both, original=["/tmp/rows.bin"]) is None


@pytest.mark.parametrize("path", ["/tmp/program/out.bin", "/data/x.bin", "/tmp/torchinductor_me/a.py"])
def test_files_of_the_program_others_folders_and_caches_of_libraries_are_none(path):
    assert shared(run(path), run(path)) is None


def test_names_that_are_drawn_and_files_that_stay_are_none():
    assert shared(run("/tmp/a1"), run("/tmp/b2")) is None
    assert shared(*[run("/tmp/rows.bin", left=["/tmp/rows.bin"])] * 2) is None
    assert shared_by_runs([], SIDES) is None
