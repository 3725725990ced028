"""Where a program writes that is started in another folder."""

from __future__ import annotations

from pathlib import Path

from unstall.prove.conditions.elsewhere import PLAN, below, first_difference, writes
from unstall.prove.left_behind.effects import STDOUT, Content, Effects
from unstall.prove.runner import WholeRun

HERE = Path("/program")
THERE = Path(PLAN["elsewhere"]["folder"])


def run(*paths):
    return WholeRun(1.0, False, 0.0, Effects(0, "", {str(path): Content.of(b"1") for path in (STDOUT, *paths)}))


def test_files_of_the_working_folder_are_known_by_their_paths_in_it():
    effects = below(run(HERE / "out" / "model.pt", "/other/x.pt", "/program-2/y.pt"), HERE)
    assert effects.contents.keys() == {STDOUT, "out/model.pt"} and writes(effects)
    assert not writes(below(run("/other/x.pt"), HERE))


def test_what_is_there_after_the_originals_run_alone_is_different():
    runs = run(THERE / "a.pt", THERE / "b.pt"), run(THERE / "b.pt", HERE / "a.pt")
    original, changed = (below(each, THERE) for each in runs)
    assert first_difference(original, changed).place == "a.pt"
    assert first_difference(changed, original) is None
    events = [below(run(f"{THERE}/events.out.tfevents.{time}.vm.1.0"), THERE) for time in (1795735460, 1795735999)]
    assert first_difference(*events) is None
