"""What a part of a step loses that finds the caches empty, and how much of them other code empties.

The figures are those of ``bench/cold.py``, and for what that has not (the code between the calls of a function, what
comes after the model's mathematics) of experiments on tests/zoo: phases beside a function and without it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unstall.model.parts import DATA

COLD_S = {DATA: 0.28e-3, "other": 0.28e-3, "comm": 0.5e-3, "forward": 0.7e-3, "backward": 0.25e-3, "optimizer": 0.15e-3}
"""What each part loses after much other code; of the model forward comes first and loses most. Code in no phase of its
own, which is Python as that of a batch is, is taken to lose as much as a batch."""
COLD_SHARE = {DATA: 2.2, "other": 1.0, "comm": 1.0, "forward": 1.6, "backward": 0.3, "optimizer": 0.4}
"""The most that a part loses, over what it takes alone: small ones have little to lose."""
NEAR_SHARE = {"other": 0.3, "comm": 0.3, "forward": 0.35, "optimizer": 0.05}
NEAR_S, NEAR_AFTER_S = 0.1e-3, 0.5e-3
"""What is lost at once, of the smallest caches and of what the core foresees: share, the most, and how soon."""
AFTER_MATH_S = {DATA: 0.3e-3, "other": 1.8e-3, "optimizer": 0.9e-3, "backward": 2.0e-3}
AFTER_MATH_SHARE = {DATA: 1.0, "other": 3.0, "optimizer": 0.8, "backward": 2.5}
"""Lost after much of the model's own mathematics, which goes through more memory than other code does."""
UPDATES = 3.0
"""The optimizer's step goes through all parameters and what it keeps of them: as much as other code in so many times as
long. Forward comes after it."""
BETWEEN_CALLS_S, BETWEEN_CALLS_SHARE = 0.5e-3, 4.0
"""Lost by the code between the calls of a function that empties all caches, for each call."""
_COLD_AFTER_S_PER_BYTE = 11e-3 / (1 << 20)
"""Of ordinary other code, for each byte of a core's second cache, after which two thirds are empty."""
L2_BYTES = 1 << 20
"""Where the system does not tell."""
_MOST_EMPTIED = 0.99

Change = tuple[float, float]
"""Something before a change, and after it."""


@dataclass(frozen=True)
class Loss:
    """What a part loses by caches that it finds empty."""

    most_s: float
    share: float
    """The most, over what the part takes alone."""
    emptied: Change
    """Share of the caches, 0 to 1."""


def cold_after_s(l2_bytes: int) -> float:
    """Seconds of ordinary code that empty two thirds of a cache of this size; 0 bytes: a size not known."""
    return _COLD_AFTER_S_PER_BYTE * (l2_bytes or L2_BYTES)


def emptied(seconds: float, cold_after_s: float) -> float:
    """Share of the caches that so much ordinary code empties."""
    return 1 - math.exp(-max(seconds, 0.0) / cold_after_s)


def as_ordinary_s(emptied: float, cold_after_s: float) -> float:
    """Seconds of ordinary code that empty so large a share."""
    return -cold_after_s * math.log(1 - min(emptied, _MOST_EMPTIED))


def after_other_code(part: str, cooling_s: Change, other_s: Change, cold_after_s: float) -> list[Loss]:
    """Of a part, beside other code that takes ``other_s`` and empties caches like ``cooling_s`` of ordinary code."""
    was, now = (emptied(seconds, cold_after_s) for seconds in cooling_s)
    losses = [Loss(COLD_S[part], COLD_SHARE[part], (was, now))]
    if part in NEAR_SHARE:
        was, now = (emptied(seconds, NEAR_AFTER_S) for seconds in other_s)
        losses.append(Loss(NEAR_S, NEAR_SHARE[part], (was, now)))
    return losses


def after_mathematics(part: str, math_s: Change, cold_after_s: float) -> list[Loss]:
    """Of a part, beside the model's other phases; forward, which comes first, loses nothing by them."""
    if part not in AFTER_MATH_S:
        return []
    was, now = (emptied(seconds, cold_after_s) for seconds in math_s)
    return [Loss(AFTER_MATH_S[part], AFTER_MATH_SHARE[part], (was, now))]


def between_calls(calls: float, emptied_by_call: float, factor: float) -> list[Loss]:
    """Of the code between so many calls a step, of a function that then takes ``factor`` times as long."""
    after = 1 - (1 - emptied_by_call) ** factor
    return [Loss(calls * BETWEEN_CALLS_S, BETWEEN_CALLS_SHARE, (emptied_by_call, after))]


def seconds_after(seen_s: float, losses: Sequence[Loss]) -> float:
    """What a part takes after a change, that took ``seen_s`` before."""
    lost = sum(loss.most_s * loss.emptied[0] for loss in losses)
    alone = max(seen_s - lost, seen_s / (1 + sum(loss.share * loss.emptied[0] for loss in losses)))
    return alone + sum(min(loss.most_s, loss.share * alone) * loss.emptied[1] for loss in losses)
