"""A file that is read as a whole for a part of it gives that part alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_modules, share_on
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.rewrites.read_part import PartialRead, partial_reads, taken_alone
from unstall.optimize.thresholds import LEAST_SHARE, READING_PARTS_SAVES
from unstall.text.units import percent


class ReadPart(Remedy):
    """The reads of whole files, of which a part is taken at once, that the stack samples fell in."""

    name = "read-part"
    brief = "`f.read()[a:b]`, `path.read_bytes()[a:b]` and `np.load(path)[i]` read the part that is taken, not the file"
    needs = "such a line of your own, and nothing else that is done with what was read"
    patterns = ("input-bound", "host-bound", "environment-bound", "callback-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return proposals_by_file(
            _hot_reads(context),
            partial(_proposal, context),
            "no hot line of your own reads a whole file for a part of it",
        )


def _hot_reads(context: RemedyContext) -> Iterator[tuple[Path, PartialRead, float]]:
    """Those that hold up a noticeable share of the step, each with that share."""
    for path, module, of_line in hot_modules(context):
        for read in partial_reads(module, of_line.keys()):
            share = share_on(of_line, module.lines(*read.nodes))
            if share >= LEAST_SHARE:
                yield path, read, share


def _proposal(context: RemedyContext, path: Path, read: PartialRead, share: float) -> Proposal:
    module = context.sources.module(path)
    line = module.first_line(read.part)
    return Proposal(
        f"reads the part of a file that it takes ({path.name}:{line})",
        speedup_without(share, READING_PARTS_SAVES),
        f"reading the whole takes {percent(share)} of the step",
        sources=context.sources.with_module(path, taken_alone(module, read)),
        key=context.key(path, line, module.code(read.part)),
        lines=Lines.of(path, module, *read.nodes),
    )


REMEDY = ReadPart()
