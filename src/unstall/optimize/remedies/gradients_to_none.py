"""``zero_grad(set_to_none=False)`` fills every gradient with zeros; torch's default drops them."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.shares import hot_lines
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "gradients-to-none"
AREA: Area = "memory"
EXACTNESS: Exactness = "exact"

_REMOVED = 0.9  # of the line's time


def propose(case: Case) -> list[Proposal] | Unfit:
    """Where the program asks for zeros, in the files that make an optimizer or go backward."""
    names = [site.file for site in case.measurement.sites if site.seam in ("~backward", "~optimizer")]
    names += [str(made.call.file) for made in case.probe.optimizers if made.call]
    found: list[Proposal] = []
    for path in dict.fromkeys(case.user_file(name) for name in names):
        if path is None:
            continue
        try:
            written = with_none(case.sources, path)
        except SourceError:
            continue
        if written is None:
            continue
        sources, lines = written
        share = sum(share for file, line, share in hot_lines(case) if file == path and line in lines)
        found.append(
            Proposal(
                NAME, f"zero_grad() drops the gradients ({path.name}:{lines[0]})", EXACTNESS,
                predicted_without(share, _REMOVED), f"filling gradients with zeros takes {percent(share)} of the step",
                sources=sources, key=path.name,
            )
        )  # fmt: skip
    return found or Unfit("the program does not fill its gradients with zeros")


def with_none(sources: Sources, path: Path) -> tuple[Sources, list[int]] | None:
    """(the sources without ``set_to_none=False``, its lines); None where it is not there."""
    found = rewrite.Found(sources.parse(path))
    calls = [call for call in found.nodes(cst.Call) if _asks_for_zeros(call)]
    if not calls:
        return None
    changed = rewrite.with_calls(found.module, calls, lambda call: rewrite.without_keyword(call, "set_to_none"))
    return sources.with_module(path, changed), [found.place(call).start.line for call in calls]


def _asks_for_zeros(call: cst.Call) -> bool:
    given = rewrite.keyword(call, "set_to_none")
    is_false = given is not None and isinstance(given.value, cst.Name) and given.value.value == "False"
    return is_false and isinstance(call.func, cst.Attribute) and call.func.attr.value == "zero_grad"
