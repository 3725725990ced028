"""A sealed plan."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unstall.child.trial.sealing import opened, sealed


@given(st.dictionaries(st.text(max_size=5), st.integers()).map(str))
def test_what_was_sealed_is_opened_and_shows_no_word(text):
    assert opened(sealed(text)) == text
    assert sealed(text) != sealed(text)


def test_plans_of_all_kinds_look_alike():
    plain, watching = sealed('{"settings": {}}'), sealed('{"settings": {}, "account": {}}')
    assert len(plain) == len(watching) and "account" not in watching


def test_what_was_not_sealed_stays_as_it_is():
    assert opened('{"account": {}}') == '{"account": {}}'
