"""What operators take, as the child side has written it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from unstall.prove.lines.calls import rising
from unstall.prove.lines.volume import OperatorCall, counted_in, rising_in_words

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
