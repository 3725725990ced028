"""Files of numbers that a changed program saves less often than the original, later, or in another size in between.

What is saved in between is all that is left of a run that is interrupted.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median, median_low
from typing import NamedTuple

from unstall.prove import thresholds
from unstall.prove.runner import WholeRun
from unstall.prove.timing import ProofPair
from unstall.records.proof import Difference
from unstall.text.units import times


class Missed(NamedTuple):
    """A file that the changed program saves less often, or later."""

    difference: Difference
    is_by_time: bool
    """Whether it may be saved every so many seconds, of which the changed program takes fewer."""


def fewer(pairs: Sequence[ProofPair]) -> Missed | None:
    """The first file that the changed program saves less often in each of its runs than the original usually does.

    Texts are left out: whether one was written anew or appended to is not known, and an honest change keeps a log open.
    """
    runs = [(pair.original, pair.changed) for pair in pairs if pair.original.saves and pair.changed.saves]
    if len(runs) < thresholds.LEAST_PAIRS:
        return None
    for path in sorted(set.intersection(*(set(run.saves) for both in runs for run in both))):
        content = runs[0][0].effects.contents.get(path)
        before = median_low(original.saves[path].least for original, _ in runs)
        saved = [changed.saves[path] for _, changed in runs]
        if content is None or content.text is not None or max(count.most for count in saved) >= before:
            continue
        after = max(1, *(count.least for count in saved))  # as it is there
        by_time = before * median(b.seconds for _, b in runs) / median(a.seconds for a, _ in runs)
        detail = f"saved {times(after)} instead of {times(before)}"
        return Missed(Difference(kind="counts", place=path, detail=detail), is_by_time=after >= math.floor(by_time))
    return None


def resized(pairs: Sequence[ProofPair]) -> Difference | None:
    """The first file that the changed program, in each of its runs, mostly saves in a size of none of the original's.

    What is saved in between is read by whoever looks at a run, and is all that is left of one that is interrupted.
    """
    runs = [(pair.original, pair.changed) for pair in pairs if pair.original.saves and pair.changed.saves]
    for path in sorted(set.intersection(*(set(run.saves) for both in runs for run in both))) if runs else []:
        content = runs[0][0].effects.contents.get(path)
        usual = [size for original, _ in runs for size in original.saves[path].sizes]
        if content is None or content.text is not None or not usual:
            continue
        odd = [[size for size in run.saves[path].sizes if not _is_usual(size, usual)] for _, run in runs]
        if all(2 * len(sizes) > len(run.saves[path].sizes) for sizes, (_, run) in zip(odd, runs)):
            detail = f"saved with {odd[0][0]} bytes, where the original saves {median_low(usual)}"
            return Difference(kind="counts", place=path, detail=detail)
    return None


def _is_usual(size: int, usual: Sequence[int]) -> bool:
    return any(abs(size - other) <= thresholds.SAME_SIZE * other for other in usual)


def delayed(pairs: Sequence[ProofPair]) -> Missed | None:
    """The first file whose saves the changed program puts off, in each of these watched runs; None for none.

    A save may be written beside the next steps, but is there before the next one is due in the original: a run that is
    interrupted in between would have lost it. Texts are left out, as in :func:`fewer`.
    """
    found = [dict(_delayed(pair)) for pair in pairs if pair.original.clock and pair.changed.clock]
    if not found:
        return None
    path = min(set.intersection(*map(set, found)), default=None)
    return None if path is None else found[0][path]


def _delayed(pair: ProofPair) -> Iterator[tuple[str, Missed]]:
    """(path, when it is saved) of the files that are saved late in one pair of runs."""
    contents, end = pair.original.effects.contents, len((pair.original.clock or {})["times"])
    for path in set(pair.original.saves) & set(pair.changed.saves):
        content = contents.get(path)
        steps, others = (_steps(run, path) for run in (pair.original, pair.changed))
        if content is None or content.text is not None or len(steps) != len(others):
            continue
        for step, other, due in zip(steps, others, [*steps[1:], end]):
            if step < due <= other:
                detail = f"saved after {other} steps, where the original saves it after {step}"
                yield path, Missed(Difference(kind="counts", place=path, detail=detail), _is_by_time(pair, path))
                break


def _is_by_time(pair: ProofPair, path: str) -> bool:
    """Whether the changed program may save it every so many seconds, as the original: as late, and as far apart."""
    before, after = (
        [moment - (run.clock or {})["began"] for moment in run.saves[path].moments]
        for run in (pair.original, pair.changed)
    )
    gaps = zip(pairwise(before), pairwise(after))
    return all(b <= thresholds.AS_LATE * a for a, b in zip(before, after)) and all(
        thresholds.AS_LATE * (later - earlier) >= due - last for (last, due), (earlier, later) in gaps
    )


def _steps(run: WholeRun, path: str) -> list[int]:
    """How many steps were made before each save of a file."""
    times = (run.clock or {})["times"]
    return [bisect_left(times, moment) for moment in run.saves[path].moments]
