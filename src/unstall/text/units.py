"""Figures as people read them: three significant figures, an SI prefix, a unit.

Every function takes a number and returns a string; a figure that is not finite reads "unknown".
Trailing zeros are dropped: they would claim a precision that an estimate does not have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeGuard

_LARGE = ("", "k", "M", "G", "T", "P", "E")
_SMALL = ("", "m", "µ", "n")
_UNKNOWN = "unknown"


def known(x: float | None) -> TypeGuard[float]:
    """Whether the figure was measured: neither absent nor NaN nor infinite."""
    return x is not None and math.isfinite(x)


def number(x: float) -> str:
    """A bare figure: ``0.4137`` is "0.414"."""
    return _digits(x) if known(x) else _UNKNOWN


def seconds(x: float) -> str:
    """A duration in seconds as ns, µs, ms, s, min or h: ``0.0241`` is "24.1 ms"."""
    if not known(x):
        return _UNKNOWN
    magnitude = abs(_rounded(x))
    if magnitude >= 7200:
        return f"{_digits(x / 3600)} h"
    if magnitude >= 600:
        return f"{_digits(x / 60)} min"
    if magnitude >= 1 or magnitude == 0:
        return f"{_digits(x)} s"
    number, prefix = _scaled(x, _SMALL, 1000)
    return f"{number} {prefix}s"


def bytes_(x: float) -> str:
    """A size in bytes, decimal prefixes: ``812_000_000`` is "812 MB"."""
    return _prefixed(x, "B")


def flops(x: float) -> str:
    """Floating-point operations a second: ``3.2e9`` is "3.2 GFLOP/s"."""
    return _prefixed(x, "FLOP/s")


def rate(x: float, noun: str = "") -> str:
    """Things a second: ``rate(1330, "samples")`` is "1.33 k samples/s"; small ones as decimals."""
    if not known(x):
        return _UNKNOWN
    number, prefix = _scaled(x, _LARGE, 1 / 1000)
    return f"{' '.join(part for part in (number, prefix, noun) if part)}/s"


def share(x: float) -> str:
    """A share of one as per cent: ``0.831`` is "83.1 %"."""
    return f"{_digits(100 * x)} %" if known(x) else _UNKNOWN


def percent(x: float) -> str:
    """A share in whole per cents, for sentences and columns; small ones keep one digit: "0.4 %"."""
    if not known(x):
        return _UNKNOWN
    if 0 < x < 0.0005:
        return "< 0.1 %"
    return share(round(x, 2 if abs(x) >= 0.01 else 3))


def times(count: int) -> str:
    """How often: "once", "3 times"."""
    return "once" if count == 1 else f"{count} times"


def factor(x: float) -> str:
    """A ratio: ``4.1`` is "4.1×"."""
    return f"{_digits(x)}×" if known(x) else _UNKNOWN


def _rounded(x: float) -> float:
    return float(f"{x:.3g}")


def _digits(x: float) -> str:
    """Three significant figures without exponent or trailing zeros."""
    value = _rounded(x)
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(x: float, prefixes: Sequence[str], step: float) -> tuple[str, str]:
    """The number and its prefix: by so many ``step`` that it is from 1 to 1000, or there is no further prefix."""
    value = _rounded(x)
    power = 0
    while power < len(prefixes) - 1 and (abs(value) >= 1000 if step < 1 else abs(value) < 1):
        value = _rounded(value * step)
        power += 1
    return _digits(value), prefixes[power]


def _prefixed(x: float, unit: str) -> str:
    if not known(x):
        return _UNKNOWN
    number, prefix = _scaled(x, _LARGE, 1 / 1000)
    return f"{number} {prefix}{unit}"
