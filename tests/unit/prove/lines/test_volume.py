"""What operators take, as the child side has written it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.prove.lines.calls import rising
from unstall.prove.lines.volume import OperatorCall, accumulating, accumulating_in_words, counted_in, rising_in_words

CALL = OperatorCall("/program/train.py", "add", 30, "cat", 41)


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "volume.json"
    path.write_text(json.dumps([[*CALL, [10, 30, 50, 70]]]))
    assert counted_in(path) == {CALL: [10, 30, 50, 70]}
    assert counted_in(tmp_path / "missing") == {}


@given(st.text())
def test_whatever_a_program_writes_there_is_no_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("written") / "volume.json"
    path.write_text(content, errors="replace")
    assert isinstance(counted_in(path), dict)


def test_the_words_name_operator_line_and_how_much():
    ((call, elements),) = rising({CALL: [1000, 3000, 5000, 7000], CALL._replace(line=9): [5, 5, 5, 5]})
    words = rising_in_words(call, elements)
    assert words.startswith("cat in add (train.py:41) takes more and more elements, 1,000 in the first quarter")


@pytest.mark.parametrize(
    ("counts", "is_all"),
    [((64, 128, 192, 256), True), ((640, 1300, 1900, 2600), True), ((64, 64, 64, 64), False), ((64, 100, 140, 300), False),
     ((0, 64, 128, 192), False)],
)  # fmt: skip
def test_validations_that_take_all_that_there_was_so_far(counts, is_all):
    call = OperatorCall("/program/train.py", "validate", 3, "pad_sequence", 9)
    assert accumulating({call: counts}) == [call] * is_all
    if is_all:
        assert "pad_sequence in validate (train.py:9) takes more elements in each validation" in accumulating_in_words(
            call, counts
        )
