"""Which lines of a change run, and whether the program's own seeds have a way of their own."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from unstall.prove.lines.reached import Place, compiled, in_words, never, only_here, places_in
from unstall.prove.lines.sources import Change
from unstall.prove.trees import Sides

TRAIN = Path("/program/train.py")
BEFORE = b"import os\n\ndef f(x):\n    return x\n\nf(1)\n"
AFTER = b"import os\n\ndef f(x):\n    if x > 3:\n        y = 1\n        return y\n    return 2 * x\n\nf(1)\n"
SIDES = Sides({TRAIN: BEFORE}, {TRAIN: AFTER})


def place(line, offset=0, function="f"):
    return Place(str(TRAIN), function, 3, line, offset)


def test_lines_that_no_run_has_reached_are_named_in_blocks():
    reached = frozenset({place(4), place(7)})
    assert list(never(Change.of(SIDES), reached)) == ["train.py:5-6"]
    assert list(never(Change.of(SIDES), frozenset())) == ["train.py:4-7"]


def test_machine_code_that_a_change_brings_is_named():
    library = Path("/program/fast.so")
    assert list(compiled(Sides({}, {library: b"\x7fELF", TRAIN: AFTER}))) == ["fast.so (compiled)"]
    assert list(compiled(Sides({library: b"\x7fELF"}, {library: None}))) == []


def test_comments_and_blank_lines_are_not_missed():
    changed = Sides({TRAIN: b""}, {TRAIN: b"# why\n\nx = 1\n"})
    assert list(never(Change.of(changed), frozenset({place(3, function="<module>")}))) == []


def test_source_that_cannot_be_read_names_none():
    broken = Sides({TRAIN: b""}, {TRAIN: b"def f(:\n"})
    assert list(never(Change.of(broken), frozenset())) == []


def test_a_way_of_its_own_is_told_in_both_directions():
    usual, known = place(4), place(6)
    assert only_here(frozenset({usual}), [frozenset({usual})]) is None
    assert only_here(frozenset({usual, known}), [frozenset({usual})]) == (known, True)
    assert only_here(frozenset({known}), [frozenset({usual, known})]) == (usual, False)


def test_a_rare_case_that_comes_under_some_other_seeds_too_tells_nothing():
    usual, rare = place(4), place(6)
    assert only_here(frozenset({usual, rare}), [frozenset({usual}), frozenset({usual, rare})]) is None
    assert only_here(frozenset({usual}), [frozenset({usual}), frozenset({usual, rare})]) is None


def test_the_words_name_line_and_function():
    assert in_words((place(6, 8), True), 5).startswith("train.py:6 runs under the program's own seeds")
    assert in_words((place(3, -1), False), 5).startswith("train.py:3 (f) runs under 5 other seeds")


def test_what_is_read_is_what_was_written(tmp_path):
    file = tmp_path / "reached.jsonl"
    file.write_text("".join(json.dumps(list(one)) + "\n" for one in (place(4), place(3, -1))))
    assert places_in(file) == {place(4), place(3, -1)}
    assert places_in(tmp_path / "missing.jsonl") == frozenset()


@given(st.binary(max_size=200))
def test_whatever_a_judged_program_writes_there_is_read_without_an_error(content):
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        assert isinstance(places_in(Path(file.name)), frozenset)
