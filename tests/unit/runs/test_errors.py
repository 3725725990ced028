"""Errors of the rooms below become one line for the user, whatever they carry."""

from __future__ import annotations

import pytest

from unstall.runs.errors import Refused, refusing


@pytest.mark.parametrize("error", [ValueError("no such run"), LookupError("no such run"), KeyError("no such run")])
def test_the_message_is_kept_and_the_error_is_its_cause(error):
    with pytest.raises(Refused, match=r"^no such run$") as refused:
        with refusing(ValueError, LookupError):
            raise error
    assert refused.value.__cause__ is error


def test_an_error_without_words_is_named():
    with pytest.raises(Refused, match=r"^ValueError$"):
        with refusing(ValueError):
            raise ValueError


def test_other_errors_pass():
    with pytest.raises(ZeroDivisionError):
        with refusing(ValueError):
            raise ZeroDivisionError
