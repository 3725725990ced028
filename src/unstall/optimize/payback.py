"""When a change that keeps samples has won back what its first epoch costs, in which it makes them and keeps them."""

from __future__ import annotations

import math


def epochs_to_pay(first: float, later: float) -> int | None:
    """By the end of which epoch a training is as fast as the original; None where it never is.

    Args:
        first: how many times as fast the first epoch is.
        later: how many times as fast each later one is.
    """
    if later <= 1:
        return None
    cost, won = 1 / first - 1, 1 - 1 / later
    return 1 + max(0, math.ceil(cost / won))


def told(first: float, later: float) -> str:
    """In words, for a person who knows how many epochs there will be."""
    epochs = epochs_to_pay(first, later)
    if epochs == 1:
        return "the first one is no slower"
    won_back = f"won back by epoch {epochs}" if epochs else "and is never won back"
    return f"the first one takes {1 / first:.2f}× as long, {won_back}"
