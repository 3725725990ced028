"""A threshold: a number that decides something, and why it is that number. Each room has one table of its own.

A table holds a :class:`Threshold`, or, where a number is also counted with or sent to another process, a plain one
whose type says the same: ``WINDOW_S: Annotated[Seconds, "why it is that long"] = 4.0``.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

Share = Annotated[float, "share, 0 to 1"]
Factor = Annotated[float, "times"]
Seconds = Annotated[float, "seconds"]
Steps = Annotated[int, "steps"]
Bytes = Annotated[int, "bytes"]


class Threshold(float):
    """A number to compare with, and the reason for its value."""

    why: str
    """The source of the value: a measurement, a rule of another tool, or a bound that follows from something."""

    def __new__(cls, value: float, why: str) -> Threshold:
        """Make a threshold of ``value``, whose reason is ``why``."""
        threshold = super().__new__(cls, value)
        threshold.why = why
        return threshold


WORTH = Threshold(1.18, "times faster, from which a stall is worth a person's time; a run of less is healthy")
"""The threshold of every room: a run, a trace and an experiment must agree on what is worth fixing."""


class Range(NamedTuple):
    """A number that is known to lie between two others, with the reason; 95 of 100 are meant to lie between them."""

    low: float
    value: float
    high: float
    why: str
