from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from unstall.text.sanitize import sanitize_line, shorten, shorten_left

anything = st.text(st.characters()) | st.text(st.sampled_from("\x1b[]31m;\x07\n\t漢字a\u202e\ud800"))


@given(anything)
def test_plain_leaves_one_line_that_can_be_shown(text: str) -> None:
    result = sanitize_line(text)
    assert not {unicodedata.category(c) for c in result} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert result == result.strip()
    result.encode("utf-8")


@given(anything)
def test_plain_twice_is_plain_once(text: str) -> None:
    assert sanitize_line(sanitize_line(text)) == sanitize_line(text)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07name", "name"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("a\r\nb\tc", "a b c"),
        ("abc\u202edef", "abcdef"),
        ("bell\x07", "bell\ufffd"),
        ("[red]x[/red] :smile:", "[red]x[/red] :smile:"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert sanitize_line(text) == shown


def test_plain_is_bounded() -> None:
    assert len(sanitize_line("x" * 10_000_000)) <= 2000


@given(st.text(), st.integers(1, 40))
def test_shortened_text_fits(text: str, cells: int) -> None:
    for cut in (shorten, shorten_left):
        result = cut(sanitize_line(text), cells)
        assert cell_len(result) <= cells
        assert result == sanitize_line(text) or "…" in result


def test_the_end_of_a_path_survives() -> None:
    assert shorten_left("/a/very/long/way/to/train.py:42", 14) == "…o/train.py:42"
    assert shorten("RandomWarp.__call__", 8) == "RandomW…"
