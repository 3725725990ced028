"""Which function holds the time of a set of stacks, or that by which one set has grown over another."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from unstall.diagnose.callers import FunctionKey, functions_of
from unstall.diagnose.placing import Placed, count
from unstall.diagnose.thresholds import HANDS_ON, HOLDS, NORMAL_95


def holder_of(samples: Sequence[Placed]) -> FunctionKey | None:
    """The deepest function of the program's that surely holds most of the samples' time.

    Where one may hold half or not it is what calls it, for else chance would decide. Where none surely does it is the
    deepest that does here, or the one that holds most; None where none of the program's is in them.
    """
    weights, whole = _weights(samples), count(samples)
    holders = [function for function, weight in weights.items() if weight >= HOLDS * whole]
    sure = [function for function in holders if weights[function] >= HOLDS * whole + NORMAL_95 * _sd(whole)]
    return _deepest(sure or holders or [function for function, _ in weights.most_common(1)], samples, weights)


def _sd(whole: int) -> float:
    """Standard deviation of the samples that one is in which holds as much as it must."""
    return math.sqrt(whole * HOLDS * (1 - HOLDS))


def holder_of_growth(early: Sequence[Placed], late: Sequence[Placed], worth: float) -> FunctionKey | None:
    """The deepest function that surely holds most of what the late samples have over the early ones.

    Each function is counted with all that it calls, for its growth is spread over many stacks of a few samples each.
    Where one may hold half or not, it is what calls it.

    Args:
        early: of a phase.
        late: of the same.
        worth: what an early sample counts, in late ones.

    Returns:
        None where chance explains it.
    """
    before, after = _weights(early), _weights(late)
    whole = count(late) - worth * count(early)
    growth: dict[FunctionKey, float] = {}
    for function, weight in after.items():
        more, variance = weight - worth * before[function], weight + worth**2 * before[function]
        if more - NORMAL_95 * math.sqrt(variance) > HOLDS * max(whole, 0.0):
            growth[function] = more
    return _deepest(growth, late, growth)


def where_handed_on(holder: FunctionKey, samples: Sequence[Placed]) -> FunctionKey:
    """The deepest function that has nearly all the time of this one, which may be less than half of what it is about.

    Else, where a function holds just about half, chance would decide whether it is blamed or what calls it.
    """
    called: Counter[FunctionKey] = Counter()
    distances: Counter[FunctionKey] = Counter()
    held = 0
    for placed in samples:
        functions = functions_of(placed)
        if holder not in functions:
            continue
        held += placed.count
        at = len(functions) - 1 - functions[::-1].index(holder)
        for distance, function in enumerate(dict.fromkeys(functions[at + 1 :]), start=1):
            called[function] += placed.count
            distances[function] += distance * placed.count
    nearly_all = [function for function, weight in called.items() if weight >= HANDS_ON * held]
    return max(nearly_all, key=lambda function: distances[function] / called[function], default=holder)


def _weights(samples: Iterable[Placed]) -> Counter[FunctionKey]:
    """Samples that each of the program's functions is in."""
    weights: Counter[FunctionKey] = Counter()
    for placed in samples:
        for function in set(functions_of(placed)):
            weights[function] += placed.count
    return weights


def _deepest(
    among: Iterable[FunctionKey], samples: Iterable[Placed], weights: Mapping[FunctionKey, float]
) -> FunctionKey | None:
    """The one that stands deepest on average; of two at the same depth, the one of the greater weight."""
    depths: Counter[FunctionKey] = Counter()
    counts: Counter[FunctionKey] = Counter()
    for placed in samples:
        functions = functions_of(placed)
        for function in set(functions):
            depths[function] += functions.index(function) * placed.count
            counts[function] += placed.count
    return max(among, key=lambda function: (depths[function] / counts[function], weights[function]), default=None)
