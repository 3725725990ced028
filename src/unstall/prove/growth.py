"""What grows to the end of a run: a longer one would not end, or not on the same machine.

Memory fills in the first epoch where something is cached, and what is made at the start stays. So the last half of the
run is looked at, in which the resident memory of the main process has to grow from each quarter to the next. Child
processes, threads, open files, what is in those without a name, and the graphs of losses that are kept, are counted
without noise: all four quarters are looked at. Batches that loaders gave are counted at the end of each epoch: how many
of them are alive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from statistics import median

from unstall.prove import thresholds
from unstall.prove.runner import WholeRun
from unstall.prove.timing import ProofPair

_QUARTERS = 4
_LEAST_LEVELS = 3  # two could be the two halves
_LEAST_SAMPLES = 4 * _QUARTERS
_COUNTED = {
    "descriptors": "it has more and more files open, {:.0f} more",
    "processes": "it starts more and more processes, {:.0f} more",
    "threads": "it has more and more threads, {:.0f} more",
    "unnamed": "it writes more and more into files without a name, {:.0f} bytes more",
    "graphs": "it keeps the graphs of more and more losses, {:.0f} more",
}
"""What is counted, in words, by its name in the account of a run."""


def growing(pairs: Sequence[ProofPair]) -> str | None:
    """What grows in the changed program in all of these watched runs, in words; None where nothing does.

    What grows in the original as well is no matter of the change.
    """
    for name, (whose, of) in _MEMORIES.items():
        least = _least(pairs, name, of)
        if least is not None:
            return (
                f"{whose} memory grows to the end of the run, by {least / 1e6:.0f} MB in the last half, which the "
                "original's does not: longer runs may not end"
            )
    for name, words in _COUNTED.items():
        least = _least(pairs, name, rise_of)
        if least is not None:
            return f"{words.format(least)} at the end, which the original does not: longer runs may not end"
    if pairs and all(_keeps_batches(pair.changed) and not _keeps_batches(pair.original) for pair in pairs):
        return "it keeps more batches with each epoch, which the original does not: longer runs may not end"
    return None


def _least(pairs: Sequence[ProofPair], name: str, of: Callable[[Sequence[float]], float | None]) -> float | None:
    """The least growth of the changed program's runs; None where one does not grow, or the original as well."""
    grown = [(of(_levels(pair.original, name)), of(_levels(pair.changed, name))) for pair in pairs]
    if not grown or any(after is None or after < thresholds.GROWTH_OVER * (before or 0.0) for before, after in grown):
        return None
    return min(after for _, after in grown if after is not None)


def growth_of(memory: Sequence[float]) -> float | None:
    """Bytes that are more in the last quarter of the last half of a run than in its first; None where none to speak of.

    Args:
        memory: bytes, at equal distances in steps.
    """
    levels = _medians(memory[len(memory) // 2 :])
    growth = _rise(levels)
    if growth is None or growth <= thresholds.LEAST_GROWTH * levels[0]:
        return _growth_by_epochs(memory)
    return growth


def _growth_by_epochs(memory: Sequence[float]) -> float | None:
    """The same of what is never given back, which comes at once in each epoch, with more in between.

    What is lower later was not kept. Two quarters may be equal, as epochs are few; the last must be above the second by
    as much as counts, and so must the third be above the first: what fills in the first epoch is a cache.
    """
    kept = [*accumulate(reversed(memory), min)][::-1]
    levels = _medians(kept)
    if len(memory) < 2 * _LEAST_SAMPLES or len({*levels}) < _LEAST_LEVELS:
        return None
    least = thresholds.LEAST_GROWTH * levels[0]
    is_growth = levels[2] - levels[0] > least and levels[3] - levels[1] > least
    return levels[3] - levels[1] if is_growth else None


def rise_of(counts: Sequence[float]) -> float | None:
    """How many more there are in the last quarter of a run than in its first; None where they do not rise throughout.

    There are few epochs in some runs: two quarters next to each other may be equal, if they rise before and after.

    Args:
        counts: at equal distances in steps.
    """
    levels = _medians(counts)
    rises = levels and levels == sorted(levels) and levels[0] < levels[2] and levels[1] < levels[3]
    return levels[-1] - levels[0] if rises and len({*levels}) >= _LEAST_LEVELS else None


def _keeps_batches(run: WholeRun) -> bool:
    """Whether each epoch leaves more batches alive, and all after the first a good part of theirs."""
    ends: Sequence[tuple[int, int]] = (run.account or {}).get("batches_alive", ())
    if len(ends) < thresholds.LEAST_EPOCHS or not all(before[1] < after[1] for before, after in pairwise(ends)):
        return False
    given, alive = (last - first for first, last in zip(ends[0], ends[-1]))
    return alive > thresholds.KEPT_OF_BATCHES * given


def growth_of_helpers(memory: Sequence[float]) -> float | None:
    """The same of what helper processes have for themselves: in steps, as they do the work of an epoch at once."""
    growth = rise_of(memory)
    return growth if growth is not None and growth > thresholds.LEAST_GROWTH * memory[0] else None


def _medians(values: Sequence[float]) -> list[float]:
    """Of each quarter; none where there are too few."""
    length = len(values) // _QUARTERS
    if len(values) < _LEAST_SAMPLES:
        return []
    return [median(values[number * length : (number + 1) * length]) for number in range(_QUARTERS)]


def _rise(levels: Sequence[float]) -> float | None:
    """From the first of these to the last, where each is higher than the one before."""
    if not levels or not all(before < after for before, after in pairwise(levels)):
        return None
    return levels[-1] - levels[0]


def _levels(run: WholeRun, name: str) -> Sequence[float]:
    return (run.account or {}).get(name, ())


_MEMORIES: Mapping[str, tuple[str, Callable[[Sequence[float]], float | None]]] = {
    "memory": ("its", growth_of),
    "helpers": ("its helper processes'", growth_of_helpers),
}
