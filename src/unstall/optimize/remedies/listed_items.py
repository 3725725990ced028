"""Numbers that a loop asks a tensor for one by one are read at once, as a list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_calls import HotCalls
from unstall.optimize.hot_lines import Part
from unstall.optimize.proposal import Proposal
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.rewrites.listed_items import at_once, item_reads
from unstall.optimize.source.module import SourceModule
from unstall.optimize.thresholds import LISTED_ITEMS_SAVE


def _found(module: SourceModule, part: Part) -> Iterator[cst.Call]:
    return (read.call for read in item_reads(module, part))


def _changed(module: SourceModule, calls: Sequence[cst.Call]) -> cst.Module:
    function = module.enclosing(calls[0], cst.FunctionDef)
    return at_once(module, list(item_reads(module, function)) if function is not None else [])


_CALLS = HotCalls(
    _found,
    _changed,
    LISTED_ITEMS_SAVE,
    title="{name} reads the numbers of its loops as lists ({place})",
    because="asking for them one by one takes {share} of the step",
    none="no hot line of your own asks a tensor for numbers one by one in a loop",
)


class ListedItems(Remedy):
    """The functions whose lines with ``.item()`` the stack samples fell in."""

    name = "listed-items"
    brief = "a loop that asks a tensor for its numbers one by one (`x[i].item()`) reads them at once, as a list"
    needs = "`x[i].item()` on a hot line of your own, in a loop of a function that leaves `x` as it is"
    patterns = ("host-bound", "input-bound", "callback-bound", "environment-bound", "overhead-bound", "sync-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return _CALLS.proposals(context)


REMEDY = ListedItems()
