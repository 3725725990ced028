"""The words and figures of a text."""

from __future__ import annotations

import pytest

from unstall.prove.left_behind.texts import single_precision, split


def test_a_text_is_words_and_figures():
    words, figures = split("a 1.5e-3 b\nc 2 s")
    assert words == ["a ", " b\nc ", " s"]
    assert [(figure.text, figure.line, figure.is_time) for figure in figures] == [("1.5e-3", 1, False), ("2", 2, True)]


@pytest.mark.parametrize("text", ["2.219501495361328", "2.2195015", "-2.219501495361328e0"])
def test_a_number_of_single_precision_in_full_has_its_unit(text):
    assert single_precision(text) == 2.0**-23


@pytest.mark.parametrize("text", ["0.5", "2.2195", "3.14159265358979", "123456789", "1e-3", "1e300"])
def test_another_number_has_none(text):
    assert single_precision(text) == 0
