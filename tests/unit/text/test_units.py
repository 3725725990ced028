from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.text import units

SCALES = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
magnitudes = st.floats(1e-9, 1e20).flatmap(lambda x: st.sampled_from([x, -x]))


def significant(number: str) -> int:
    return len(number.replace(".", "").replace("-", "").strip("0"))


@given(magnitudes)
def test_seconds_reads_back_within_half_a_per_cent(x: float) -> None:
    number, unit = units.seconds(x).split()
    assert float(number) * SCALES[unit] == pytest.approx(x, rel=5.1e-3)
    assert significant(number) <= 3


@given(st.floats(1, 1e20))
def test_bytes_read_back_within_half_a_per_cent(x: float) -> None:
    number, unit = units.bytes_(x).split()
    assert float(number) * PREFIXES[unit.removesuffix("B")] == pytest.approx(x, rel=5.1e-3)
    assert 1 <= float(number) < 1000
    assert significant(number) <= 3


@given(st.floats(1e-4, 1e20), st.sampled_from(["", "steps", "env steps"]))
def test_rate_reads_back_and_keeps_its_noun(x: float, noun: str) -> None:
    match = re.fullmatch(rf"([\d.]+)(?: ([kMGTPE]))?(?: {noun})?/s", units.rate(x, noun))
    assert match
    number, prefix = match.groups()
    assert float(number) * PREFIXES[prefix or ""] == pytest.approx(x, rel=5.1e-3)


@given(st.floats(1e-6, 1))
def test_share_and_factor_read_back(x: float) -> None:
    assert float(units.share(x).removesuffix(" %")) / 100 == pytest.approx(x, rel=5.1e-3)
    assert float(units.factor(x).removesuffix("×")) == pytest.approx(x, rel=5.1e-3)


@given(st.floats(0, 1))
def test_percent_is_whole_from_one_per_cent_on(x: float) -> None:
    text = units.percent(x)
    if x >= 0.01:
        assert re.fullmatch(r"\d+ %", text)
        assert float(text.removesuffix(" %")) == pytest.approx(100 * x, abs=0.5001)


@given(st.floats(-1e300, 1e300) | st.sampled_from([math.nan, math.inf, -math.inf]))
def test_any_float_gives_a_line(x: float) -> None:
    for write in (units.seconds, units.bytes_, units.rate, units.share, units.factor, units.number):
        text = write(x)
        assert text and "e+" not in text and "nan" not in text


@pytest.mark.parametrize(
    "x, text",
    [
        (0, "0 s"),
        (0.0241, "24.1 ms"),
        (0.9996, "1 s"),
        (599.9, "10 min"),
        (125, "125 s"),
        (7200, "2 h"),
        (1.5e-6, "1.5 µs"),
        (-0.25, "-250 ms"),
        (2.5e-10, "0.25 ns"),
        (math.nan, "unknown"),
    ],
)
def test_seconds(x: float, text: str) -> None:
    assert units.seconds(x) == text


def test_the_others_by_example() -> None:
    assert units.bytes_(812_345_678) == "812 MB"
    assert units.bytes_(999_999) == "1 MB"
    assert units.flops(3.2e9) == "3.2 GFLOP/s"
    assert units.rate(1330, "samples") == "1.33 k samples/s"
    assert units.rate(0.0125, "steps") == "0.0125 steps/s"
    assert units.share(0.8312) == "83.1 %"
    assert units.percent(0.8312) == "83 %"
    assert units.percent(0.004) == "0.4 %"
    assert units.percent(0.0002) == "< 0.1 %"
    assert units.percent(0) == "0 %"
    assert units.factor(4.13) == "4.13×"


@pytest.mark.parametrize("x, yes", [(None, False), (math.nan, False), (math.inf, False), (0.0, True)])
def test_known(x: float | None, yes: bool) -> None:
    assert units.known(x) is yes
