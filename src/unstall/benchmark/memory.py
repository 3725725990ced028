"""Which of the user's lines allocate: a memray recording read back, in the parent process."""

from __future__ import annotations

import importlib
import itertools
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from unstall.benchmark.thresholds import GROWING_END, GROWING_LINE, GROWING_MOMENTS, GROWING_SPAN
from unstall.child.user_files import is_program_file
from unstall.records.memory import AllocatingLine, MemoryLines

_Site = tuple[str, str, int]  # function, file, line


def allocating_lines(path: Path, *, top: int = 5) -> MemoryLines:
    """Read what memray recorded of a run, killed runs included.

    Growth is memory never freed by the end and allocated again and again until then; a line's bytes
    count for the deepest frame of the user's own code.

    Args:
        path: the file that :mod:`unstall.child.memory` had memray write.
        top: how many lines to name at most, for the peak and for the growth each.

    Raises:
        RuntimeError: memray is not installed, or the file is no recording or was cut off before
            anything was recorded; one line says which.
    """
    try:
        memray: Any = importlib.import_module("memray")
    except ImportError:
        raise RuntimeError('reading the memory recording needs memray: pip install "unstall[memory]"') from None
    memray.set_log_level(logging.CRITICAL)  # a recording that was cut off is no error of ours
    try:
        with memray.FileReader(path) as reader:
            peak, growth = _peak_allocations(reader), _growing_allocations(reader)
            return MemoryLines(_largest(peak, top), _largest(growth, top))
    except OSError as error:
        raise RuntimeError(
            f"the memory recording {path.name} cannot be read; was the program killed before "
            f"anything was recorded? ({error})"
        ) from None
    finally:
        memray.set_log_level(logging.WARNING)


def program_site(stack: Iterable[_Site]) -> _Site | None:
    """The deepest frame of the program's own code in a stack, innermost first; None if it has none."""
    return next((site for site in stack if site[1] and is_program_file(site[1])), None)


def _largest(allocations: Iterable[tuple[_Site, int]], top: int) -> list[AllocatingLine]:
    """Sum bytes by line; the `top` lines with the most."""
    sums: Counter[_Site] = Counter()
    for site, size in allocations:
        sums[site] += size
    lines = [AllocatingLine(*site, size) for site, size in sums.most_common(top)]
    return [line for line in lines if line.bytes >= GROWING_LINE * lines[0].bytes]


def _peak_allocations(reader: Any) -> Iterator[tuple[_Site, int]]:
    for record in reader.get_high_watermark_allocation_records(merge_threads=True):
        site = program_site(record.stack_trace())
        if site is not None:
            yield site, record.size


def _growing_allocations(reader: Any) -> Iterator[tuple[_Site, int]]:
    """What was never freed, of the lines that left more and more behind; imports are left out."""
    unfreed: defaultdict[_Site, list[Any]] = defaultdict(list)
    allocations: Counter[int] = Counter()
    for record in reader.get_temporal_allocation_records(merge_threads=True):
        stack = record.stack_trace()
        site = program_site(stack)
        if site is not None and not _loads_code(stack, site):
            for interval in record.intervals:
                allocations[interval.allocated_before_snapshot] += interval.n_allocations
                if interval.deallocated_before_snapshot is None:
                    unfreed[site].append(interval)
    progress = _progress(allocations)
    for site, intervals in unfreed.items():
        if keeps_growing([progress[interval.allocated_before_snapshot] for interval in intervals]):
            for interval in intervals:
                yield site, interval.n_bytes


def _progress(allocations: Mapping[int, int]) -> dict[int, float]:
    """How far the program had come at each snapshot, 0 to 1, by the allocations made until then.

    Not by time: a short loop after a long start would not count for anything.
    """
    total = sum(allocations.values())
    so_far = itertools.accumulate(count for _, count in sorted(allocations.items()))
    return {snapshot: count / total for snapshot, count in zip(sorted(allocations), so_far)}


def keeps_growing(progress: Iterable[float]) -> bool:
    """Whether allocations at these parts of the program's progress (0 to 1) are steady growth."""
    distinct = set(progress)
    if len(distinct) < GROWING_MOMENTS:
        return False
    first, last = min(distinct), max(distinct)
    return last - first >= GROWING_SPAN and last >= GROWING_END


def _loads_code(stack: Iterable[_Site], site: _Site) -> bool:
    """Whether the user's line was importing a module, and it is the import that allocated."""
    inner = itertools.takewhile(lambda frame: frame != site, stack)
    return any(file.startswith("<frozen importlib") for _, file, _ in inner)
