"""Amounts as people type them."""

from __future__ import annotations

import click
import pytest

from unstall.cli import amounts


@pytest.mark.parametrize(
    "read, text, value",
    [
        (amounts.share, "5%", 0.05),
        (amounts.share, "0.1", 0.1),
        (amounts.share, "2.5 %", 0.025),
        (amounts.seconds, "90", 90),
        (amounts.seconds, "20m", 1200),
        (amounts.seconds, "1.5h", 5400),
        (amounts.seconds, "30d", 30 * 86400),
        (amounts.size, "1GB", 10**9),
        (amounts.size, "500 kB", 500_000),
        (amounts.hourly, "2.5/h", 2.5),
        (amounts.hourly, "3", 3),
    ],
)
def test_an_amount(read, text, value):
    assert read(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "read, text",
    [
        (amounts.share, "5"),
        (amounts.share, "-1%"),
        (amounts.share, "0%"),
        (amounts.share, "five"),
        (amounts.seconds, "20y"),
        (amounts.seconds, "0"),
        (amounts.seconds, "nan"),
        (amounts.size, "1XB"),
        (amounts.hourly, "2.5/day"),
        (amounts.hourly, ""),
    ],
)
def test_no_amount(read, text):
    with pytest.raises(click.BadParameter, match="write"):
        read(text)
