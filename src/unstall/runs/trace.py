"""``unstall trace``: read GPU traces, and say what they show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unstall.runs.errors import Refused, refusing
from unstall.trace.readers import read
from unstall.trace.timeline import TraceError

if TYPE_CHECKING:
    from unstall.records.report import Report
    from unstall.records.trace import TraceComparison
    from unstall.report.progress import Progress
    from unstall.trace.ranks import Ranks, Summary
    from unstall.trace.timeline import Timeline

_IN_MEMORY_BYTES = 64 << 20
"""Files of several ranks that are kept in memory together, so that all ranks can be replayed as one."""


def diagnose(
    files: Sequence[Path], what_ifs: Sequence[str], progress: Progress, *, in_memory_bytes: int = _IN_MEMORY_BYTES
) -> tuple[Report, list[str]]:
    """What stalls the device, over all ranks; and a line for each file that was left out.

    ``in_memory_bytes``: files of several ranks up to this are kept in memory together.

    Raises:
        Refused: no file can be read as a trace, or a what-if makes no sense.
    """
    from unstall.diagnose.trace_report import report
    from unstall.trace.replay.whatif import parse

    with refusing(TraceError):
        for text in what_ifs:
            parse(text)  # before a long reading, not after it
        ranks, problems = _read_ranks(files, progress, in_memory_bytes)
        return report(ranks, [str(file) for file in files], what_ifs=what_ifs), problems


def compare(before: Path, after: Path, progress: Progress) -> tuple[TraceComparison, list[str]]:
    """What changed from one trace to another; and a line for each file of which only a part was compared."""
    from unstall.diagnose.trace_comparison import compare

    first, about_first = read_first(before, progress)
    second, about_second = read_first(after, progress)
    return compare(first, second), [*about_first, *about_second]


def read_first(file: Path, progress: Progress) -> tuple[Timeline, list[str]]:
    """The first process of a trace, and a line that says so where there are more: an Nsight export may hold several.

    Raises Refused where the file cannot be read.
    """
    with refusing(TraceError):
        timelines = read(file, _reading(progress, 0, 1))
    first = timelines[0]
    if len(timelines) == 1:
        return first, []
    rank = "" if first.rank is None else f" (rank {first.rank})"
    return first, [f"{first.path} holds {len(timelines)} processes: the first{rank} is taken"]


def _reading(progress: Progress, number: int, of: int) -> Callable[[float], None]:
    """Shows how much of one of several files has been read."""
    return lambda share: progress.update(f"reading {(number + share) / of:.0%}")


def _read_ranks(files: Sequence[Path], progress: Progress, in_memory_bytes: int) -> tuple[Ranks, list[str]]:
    """All ranks in memory where they are small; of large ones little more than figures, until one is asked for."""
    from unstall.trace.ranks import Ranks

    if len(files) == 1 or sum(file.stat().st_size for file in files) <= in_memory_bytes:
        timelines, problems = _read_all(files, progress)
        return Ranks.of(timelines), problems
    from unstall.trace.parallel import summaries_of

    summaries, errors = summaries_of(files, _reading(progress, 0, 1))
    if not summaries:
        raise Refused("none of the files can be read as a trace")

    def load(summary: Summary) -> Timeline:
        return read(summary.path)[summary.part]

    return Ranks(summaries, load), [f"left out: {error}" for error in errors]


def _read_all(files: Sequence[Path], progress: Progress) -> tuple[list[Timeline], list[str]]:
    """Of several files, those that can be read; TraceError if there is none."""
    timelines: list[Timeline] = []
    errors: list[TraceError] = []
    for number, file in enumerate(files):
        try:
            timelines += read(file, _reading(progress, number, len(files)))
        except TraceError as error:
            errors.append(error)
    if errors and not timelines:
        raise errors[0]
    return timelines, [f"left out: {error}" for error in errors]
