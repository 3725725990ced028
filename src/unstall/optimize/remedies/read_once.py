"""A file that is read and parsed again for every sample or batch is kept as it was parsed, until it changes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import hot_modules, share_on
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.rewrites.read_once import FileRead, file_reads, reading_once, refuse_own_files
from unstall.optimize.source.aliasing import refuse_changes
from unstall.optimize.source.toplevel import with_runtime
from unstall.optimize.thresholds import LEAST_SHARE, READ_ONCE_SAVES
from unstall.text.units import percent


class ReadOnce(Remedy):
    """The reads of whole files that the stack samples fell in."""

    name = "read-once"
    brief = (
        "a file read and parsed again for every sample or batch (JSON, CSV, pickle, NumPy, torch, pandas) is kept as "
        "it was parsed, until it changes on disk"
    )
    needs = "a read in your own code, of which the program only reads the result"
    patterns = ("input-bound", "host-bound", "environment-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return proposals_by_file(
            _hot_reads(context),
            partial(_proposal, context),
            "no read of a file in the program's own code takes a noticeable share",
        )


def _hot_reads(context: RemedyContext) -> Iterator[tuple[Path, cst.FunctionDef, FileRead, float]]:
    """The file reads that hold up a noticeable share of the step, each with that share."""
    for path, module, of_line in hot_modules(context):
        functions = dict.fromkeys(module.innermost(line, cst.FunctionDef) for line in of_line)
        for function in functions:
            for read in file_reads(module, function) if function is not None else ():
                share = share_on(of_line, module.lines(read.call, read.value))
                if function is not None and share >= LEAST_SHARE:
                    yield path, function, read, share


def _proposal(context: RemedyContext, path: Path, function: cst.FunctionDef, read: FileRead, share: float) -> Proposal:
    module, loader = context.sources.module(path), context.main_loader
    line = min(module.lines(read.call, read.value))
    refuse_own_files(module, function, read)
    refuse_changes(module, read.value, samples_are_collated=loader is not None and loader.collates_by_default)
    return Proposal(
        f"the file that {function.name.value} reads ({path.name}:{line}) is parsed once",
        speedup_without(share, READ_ONCE_SAVES),
        f"reading it again takes {percent(share)} of the step",
        sources=context.sources.with_module(path, with_runtime(reading_once(module, read), "read_once")),
        key=context.key(path, module.full_name(function), module.code(read.path)),
        lines=Lines.of(path, module, read.block or read.value),
        keeps_files=True,
    )


REMEDY = ReadOnce()
