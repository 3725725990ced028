"""Numbers as the evidence says them."""

from __future__ import annotations


def percent(share: float | None) -> str:
    """A share as whole per cents."""
    return f"{100 * (share or 0.0):.0f} %"


def ms(seconds: float) -> str:
    """A time of the order of a step: µs, ms or s with three figures."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s"


def megabytes(size: float) -> str:
    """A size in kB, MB or GB."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if abs(size) >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size / 1e3:.3g} kB"
