"""Garbage collections that the program asks for in every step: what lives on is left out of them."""

from __future__ import annotations

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.sources import SourceError
from unstall.text.units import percent

NAME = "gc-freeze"
AREA: Area = "memory"
EXACTNESS: Exactness = "exact"

_MIN_SHARE = 0.02


def propose(case: Case) -> list[Proposal] | Unfit:
    """``gc.freeze()`` before the loop: collections then look only at what was made since."""
    share = case.measurement.gc_s / case.measurement.step.mean
    if share < _MIN_SHARE:
        return Unfit(f"garbage collection takes {percent(share)} of the step")
    title = "gc.freeze() once before the first step"
    proposal = Proposal(
        NAME, title, EXACTNESS, predicted_without(share, 0.9),
        f"garbage collection takes {percent(share)} of the step, over objects that live on",
        settings={"gc_freeze": True}, not_written="no loop with an optimizer's step was found to put it before",
    )  # fmt: skip
    for made in case.probe.optimizers:
        path = case.user_file(made.call.file) if made.call else None
        if path is None or made.call is None:
            continue
        try:
            found = rewrite.Found(case.sources.parse(path))
            call = found.call(made.call)
            statement = found.statement(call) if call is not None else None
            if not isinstance(statement, cst.SimpleStatementLine):
                continue
            module = rewrite.with_lines_around(found.module, statement, after=["gc.freeze()\n"])
            sources = case.sources.with_module(path, rewrite.with_import(module, "gc"))
        except SourceError:
            continue
        return [
            Proposal(
                NAME, f"gc.freeze() after the optimizer is made ({path.name}:{made.call.line})", EXACTNESS,
                proposal.predicted, proposal.because, sources=sources, runtime={"gc_freeze": True}, key="freeze",
            )
        ]  # fmt: skip
    return [proposal]
