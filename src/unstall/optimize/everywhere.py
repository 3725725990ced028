"""The same small change wherever it fits, in all files of the user's that the program was seen to run through."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import files_in_stacks, readable
from unstall.optimize.source.edit import Edit, edited
from unstall.optimize.source.errors import NotApplicable, located
from unstall.optimize.source.files import Sources
from unstall.optimize.source.module import SourceModule

EditsOf = Callable[[SourceModule], Iterator[tuple[cst.CSTNode, Edit]]]
"""The nodes of a file that are to be changed, and how. It may raise NotApplicable."""


def changed_everywhere(context: RemedyContext, edits_of: EditsOf, otherwise: str) -> tuple[Sources, str]:
    """The sources with the edits of each file, and where these are: ``net.py:12, net.py:30``.

    Raises NotApplicable with ``otherwise`` where there are none.
    """
    sources, places = context.sources, []
    for path, module in readable(context, files_in_stacks(context)):
        with located(path.name):
            edits = dict(edits_of(module))
        if edits:
            sources = sources.with_module(path, edited(module.tree, edits))
            places += [f"{path.name}:{module.first_line(node)}" for node in edits]
    if not places:
        raise NotApplicable(otherwise)
    return sources, ", ".join(places)
