from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from unstall.report.layout import Page, blocks, clip, encodable, pack, sparkline, wrap
from unstall.text.sanitize import sanitize_line

lines = st.text().map(sanitize_line)


@given(lines, st.integers(2, 60))
def test_wrap_fits_and_loses_nothing(text: str, width: int) -> None:
    wrapped = wrap(text, width)
    assert all(cell_len(line) <= width for line in wrapped)
    assert "".join(wrapped).replace(" ", "") == text.replace(" ", "")


def test_wrap_keeps_the_per_cent_sign_with_its_figure() -> None:
    assert wrap("it takes 83 % of it", 12) == ["it takes", "83 % of it"]


@given(st.lists(lines, min_size=1), st.integers(8, 60))
def test_pack_fits(phrases: list[str], width: int) -> None:
    assert all(cell_len(line) <= width for line in pack(phrases, width))


def test_pack_tears_no_phrase_apart() -> None:
    assert pack(["12 steps", "3 s in all", "exit code 0"], 22) == [
        "12 steps · 3 s in all",
        "exit code 0",
    ]


def test_clip_says_that_lines_are_missing() -> None:
    assert clip(["one", "two", "three"], 2, 10) == ["one", "two…"]
    assert clip(["one", "two"], 2, 10) == ["one", "two"]


@given(st.floats(0, 1), st.integers(1, 80))
def test_blocks_are_as_long_as_the_share(share: float, cells: int) -> None:
    text = blocks(share, cells)
    assert cell_len(text) <= cells
    assert len(text) == pytest.approx(share * cells, abs=1)
    assert bool(text) == (share > 0)


def test_table_columns_line_up() -> None:
    page = Page(60)
    page.table("Spans", ("", "count"), [("漢字", "1"), ("a", "22")])
    assert [line.plain for line in page.lines] == [
        "Spans            count",
        "           漢字      1",
        "           a        22",
    ]


def test_height_counts_the_rows_of_a_long_command() -> None:
    page = Page(40)
    page.command("Next", "why:", "x" * 60)
    assert page.height == 1 + 2


def test_markup_is_text() -> None:
    page = Page(60)
    page.field("Note", "[bold]not bold[/bold] :smile:")
    assert page.lines[0].plain == "Note       [bold]not bold[/bold] :smile:"


@pytest.mark.parametrize(
    "encoding, expected",
    [("utf-8", "4.1× → █▌ 漢"), ("ascii", "4.1x > ## ?"), ("latin-1", "4.1x > ## ?")],
)
def test_output_fits_the_encoding(encoding: str, expected: str) -> None:
    assert encodable(Text("4.1× → █▌ 漢"), encoding).plain == expected


@pytest.mark.parametrize(
    "values, bars",
    [([1, 2, 4], "▃▅█"), ([4.0, 4.1], "██"), ([1, 1000], "▁█"), ([0.0, 4.0, 8.0], "▁▅█"), ([3.0], ""), ([0, 0], "")],
)
def test_heights_of_a_sparkline_are_from_zero(values: list[float], bars: str) -> None:
    assert sparkline(values) == bars


def test_of_many_values_the_latest_are_drawn() -> None:
    assert sparkline([1] * 50 + [8]) == "▂" * 39 + "█"


@pytest.mark.parametrize("cells, width", [(10, 40), (80, 80), (300, 120)])
def test_a_page_is_neither_too_narrow_nor_too_wide(cells: int, width: int) -> None:
    assert Page.fitting(cells).width == width
