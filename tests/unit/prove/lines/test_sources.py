"""What a change is, as lines and as Python."""

from __future__ import annotations

from pathlib import Path

from unstall.prove.lines.sources import Change
from unstall.prove.trees import Sides

TRAIN = Path("/program/train.py")
BEFORE = b"import os\n\ndef f(x):\n    return x\n\nf(1)\n"
AFTER = b"import os\n\ndef f(x):\n    if x > 3:\n        y = 1\n        return y\n    return 2 * x\n\nf(1)\n"


def test_the_lines_of_a_change_are_those_that_it_has_brought():
    change = Change.of(Sides({TRAIN: BEFORE}, {TRAIN: AFTER}))
    assert change.lines == {str(TRAIN): [4, 5, 6, 7]}
    (source,) = change.sources
    assert (source.path, source.lines, source.place(5)) == (str(TRAIN), [4, 5, 6, 7], "train.py:5")
    assert [len(tree.body[1].body) for tree in (source.before, source.after)] == [1, 2]


def test_what_is_only_taken_away_brings_none_and_neither_does_other_text():
    assert Change.of(Sides({TRAIN: AFTER}, {TRAIN: b"import os\n"})).lines == {}
    notes = Path("/program/notes.md")
    assert Change.of(Sides({notes: b"a"}, {notes: b"b"})).lines == {}


def test_a_new_file_was_nothing_before():
    (source,) = Change.of(Sides({TRAIN: None}, {TRAIN: b"x = 1\n"})).sources
    assert source.before.body == [] and len(source.after.body) == 1


def test_a_file_that_is_no_python_has_lines_and_no_source():
    for sides in (Sides({TRAIN: BEFORE}, {TRAIN: b"def f(:\n"}), Sides({TRAIN: b"def f(:\n"}, {TRAIN: AFTER})):
        change = Change.of(sides)
        assert change.lines and not change.sources
