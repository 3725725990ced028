"""The words and figures of a text."""

from __future__ import annotations

from unstall.prove.left_behind.texts import split


def test_a_text_is_words_and_figures():
    words, figures = split("a 1.5e-3 b\nc 2 s")
    assert words == ["a ", " b\nc ", " s"]
    assert [(figure.text, figure.line, figure.is_time) for figure in figures] == [("1.5e-3", 1, False), ("2", 2, True)]
