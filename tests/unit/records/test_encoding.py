"""Numbers that NumPy made are written as Python's, and any text is, in every file of ours."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.records.encoding import indented_json, packed, plain_json


class Record(msgspec.Struct, frozen=True):
    step_s: float
    steps: int
    healthy: bool


@pytest.mark.parametrize(
    ("encode", "decode"),
    [(indented_json, msgspec.json.decode), (plain_json, msgspec.json.decode), (packed, msgspec.msgpack.decode)],
)
def test_numbers_of_numpy_are_written(encode, decode):
    record = Record(np.float64(0.25), np.int64(3), np.bool_(True))
    assert decode(encode(record), type=Record) == Record(0.25, 3, True)


def test_what_has_no_place_is_refused():
    with pytest.raises(TypeError, match="object has no place"):
        plain_json([object()])


@pytest.mark.parametrize(("encode", "decode"), [(indented_json, msgspec.json.decode), (packed, msgspec.msgpack.decode)])
def test_halves_of_characters_are_replaced(encode, decode):
    record = {"H100\ud800": ["\udc80a", np.float32(0.5), {"pair": "\ud83d\ude00", "plain": "ä"}]}
    assert decode(encode(record)) == {"H100\ufffd": ["\ufffda", 0.5, {"pair": "😀", "plain": "ä"}]}


_TEXTS = st.text(st.characters())  # halves of characters too


@given(st.recursive(_TEXTS | st.integers(-9, 9), lambda inner: st.lists(inner) | st.dictionaries(_TEXTS, inner)))
def test_any_text_can_be_written(record):
    assert indented_json(record)
