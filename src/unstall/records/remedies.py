"""What became of the changes that ``unstall optimize`` thought of, in a report."""

from __future__ import annotations

from enum import Enum
from typing import Literal

import msgspec


class RemedyStatus(Enum):
    """What became of a change that ``unstall optimize`` thought of."""

    KEPT = "kept"
    SLOWER = "slower"
    """Measured, and no faster than the program without it, or not soon enough."""
    NOT_EQUIVALENT = "not_equivalent"
    """It computes something else, or that could not be compared."""
    INCONCLUSIVE = "inconclusive"
    """The gain is not certain, with all runs that there was time for."""
    FAILED = "failed"
    """The changed program ended with an error or did not end."""
    UNTRIED = "untried"
    """It looks worth a trial, for which there was no time."""
    BELOW_WORTH = "below_worth"
    """Not tried, as its predicted gain is too small."""
    ADVICE = "advice"
    """Advice for a person: it is never tried."""


Sameness = Literal["exact", "close", "reduced"]
"""How the same a changed program computes, as measured: bit for bit; but for rounding; or not even so, with other
precision or other random numbers."""

SAMENESS_MEANS: dict[Sameness, str] = {
    "exact": "the same results, bit for bit",
    "close": "the same results but for rounding",
    "reduced": "other results, as you allowed",
}
"""What each sameness means, from the most to the least."""


class TriedRemedy(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """A change that ``unstall optimize`` thought of: what became of it, and why it is not kept."""

    name: str
    exactness: Literal["exact", "close", "output-changing", "reduced", "training-changing"]
    """What is expected of its results; ``sameness`` is what was measured."""
    kept: bool
    status: RemedyStatus | None = None
    """None in reports that were written before there was a status."""
    speedup: float | None = None
    ci95: tuple[float, float] | None = None
    predicted_speedup: float | None = None
    first_epoch_speedup: float | None = None
    """Of what keeps samples for later epochs: that of the epoch in which it makes and keeps them."""
    start_s: float | None = None
    """Of what compiles: seconds by which each run starts later, once it has been compiled."""
    sameness: Sameness | None = None
    """None where that was not measured, or cannot be said."""
    equivalent: bool | None = None
    """Whether it is exact or close; None where that was not asked."""
    why_not: str | None = None
