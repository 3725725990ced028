"""A file that is read as a whole for a part of it gives that part alone."""

from __future__ import annotations

from pathlib import Path

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_files, share_on
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_of
from unstall.optimize.source.partial_reads import PartialRead, partial_reads, taken_alone
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
        found = [
            (path, read, share)
            for path, of_line in hot_files(context).items()
            for read in partial_reads(context.sources.module(path), of_line.keys())
            if (share := share_on(of_line, context.sources.module(path).lines(*read.nodes))) >= LEAST_SHARE
        ]
        return proposals_of(
            found,
            lambda candidate: _proposal(context, *candidate),
            "no hot line of your own reads a whole file for a part of it",
        )


def _proposal(context: RemedyContext, path: Path, read: PartialRead, share: float) -> Proposal:
    module = context.sources.module(path)
    line = module.first_line(read.part)
    return Proposal(
        f"reads the part of a file that it takes ({path.name}:{line})",
        speedup_without(share, READING_PARTS_SAVES),
        f"reading the whole takes {percent(share)} of the step",
        sources=context.sources.with_module(path, taken_alone(module, read)),
        key=f"{path.name}:{line}:{module.code(read.part)}",
        lines=Lines.of(path, module, *read.nodes),
    )


REMEDY = ReadPart()
