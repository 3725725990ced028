"""Amounts as people type them."""

from __future__ import annotations

import click
import pytest

from unstall.cli import parsers


@pytest.mark.parametrize(
    "read, text, value",
    [
        (parsers.share, "5%", 0.05),
        (parsers.share, "0.1", 0.1),
        (parsers.share, "2.5 %", 0.025),
        (parsers.seconds, "90", 90),
        (parsers.seconds, "20m", 1200),
        (parsers.seconds, "1.5h", 5400),
        (parsers.seconds, "30d", 30 * 86400),
        (parsers.size, "1GB", 10**9),
        (parsers.size, "500 kB", 500_000),
        (parsers.hourly, "2.5/h", 2.5),
        (parsers.hourly, "3", 3),
    ],
)
def test_an_amount(read, text, value):
    assert read(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "read, text",
    [
        (parsers.share, "5"),
        (parsers.share, "-1%"),
        (parsers.share, "0%"),
        (parsers.share, "five"),
        (parsers.seconds, "20y"),
        (parsers.seconds, "0"),
        (parsers.seconds, "nan"),
        (parsers.size, "1XB"),
        (parsers.hourly, "2.5/day"),
        (parsers.hourly, ""),
    ],
)
def test_no_amount(read, text):
    with pytest.raises(click.BadParameter, match="write"):
        read(text)
