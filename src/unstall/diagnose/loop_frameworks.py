"""Time in the own code of a framework that runs the loop, whose caller only said ``trainer.fit(...)``.

Such frameworks are nobody's to blame as long as they call what others wrote. What they do themselves, between those
calls, is theirs: a history that is searched again and again, bookkeeping of every step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from unstall.child.user_files import is_program_file, runs_loops
from unstall.diagnose.callers import lines_to_parts
from unstall.diagnose.placing import Placed
from unstall.diagnose.program_frames import program_frames
from unstall.records.measurements import SeamSite


def starting_lines(sites: Iterable[SeamSite]) -> frozenset[tuple[str, int]]:
    """File and line of the program's calls that start a loop of somebody else's: they lead to several of its parts."""
    phases: dict[tuple[str, int], set[str]] = defaultdict(set)
    for phase, file, _, line in lines_to_parts(sites):
        phases[(file, line)].add(phase)
    return frozenset(line for line, led_to in phases.items() if len(led_to) > 1)


def own_code(samples: Iterable[Placed]) -> list[Placed]:
    """Those of the samples that are in a framework's own code, with its functions among the program's."""
    return [_named(placed) for placed in samples if _is_own(placed)]


def with_own_code(samples: Iterable[Placed]) -> list[Placed]:
    """The samples; those in a framework's own code with its functions among the program's."""
    return [_named(placed) if _is_own(placed) else placed for placed in samples]


def _is_own(placed: Placed) -> bool:
    frames = placed.sample.frames
    return bool(frames) and runs_loops(frames[-1].file)


def _named(placed: Placed) -> Placed:
    return replace(placed, program=program_frames(placed.sample.frames, _may_be_named))


def _may_be_named(file: str) -> bool:
    return is_program_file(file) or runs_loops(file)
