"""Gradients of several processes: exchanged once a step, not after each batch that only accumulates, and not copied."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "gradient-sync"
AREA: Area = "communication"
EXACTNESS: Exactness = "exact"
"""Of the views; other buckets may add in another order, so they are close."""

_MIN_SHARE = 0.05
_COPIED = 0.1  # of the time to exchange gradients: the copies to and from the buckets
_BUCKET_MB = 100
_BUCKETS = 0.2  # of that time: fewer, larger exchanges where latency counts


def propose(case: Case) -> list[Proposal] | Unfit:
    """Keywords of the call that wraps the model, and ``no_sync`` told where gradients accumulate."""
    share = case.share("comm")
    if len(case.measurement.ranks) < 2 and not share:
        return Unfit("the program is one process")
    if share < _MIN_SHARE:
        return Unfit(f"the exchange of gradients takes {percent(share)} of the step")
    found: list[Proposal] = []
    for path in dict.fromkeys(case.user_file(site.file) for site in case.measurement.sites):
        if path is not None:
            found += _of_file(case, path, share)
    return found or Unfit("the call of DistributedDataParallel is not in the program's own code")


def _of_file(case: Case, path: Path, share: float) -> list[Proposal]:
    options = (
        ("gradient_as_bucket_view", "True", "exact", _COPIED),
        ("bucket_cap_mb", str(_BUCKET_MB), "close", _BUCKETS),
    )
    found: list[Proposal] = []
    for name, value, exactness, removed in options:
        try:
            sources = with_keyword(case.sources, path, name, value)
        except SourceError:
            return []
        if sources is not None:
            found.append(
                Proposal(
                    NAME, f"{name}={value} ({path.name})", exactness,  # type: ignore[arg-type]
                    predicted_without(share, removed), f"the exchange of gradients takes {percent(share)} of the step",
                    sources=sources, key=f"{path.name}:{name}",
                )
            )  # fmt: skip
    line = accumulates(case.sources, path)
    if line is not None:
        found.append(
            Proposal(
                NAME, f"model.no_sync() around the batches that only accumulate ({path.name}:{line})", "exact",
                predicted_without(share, 0.5), f"gradients are exchanged after each: {percent(share)} of the step",
                advice=True, key=f"{path.name}:no_sync",
            )
        )  # fmt: skip
    return found


def with_keyword(sources: Sources, path: Path, name: str, value: str) -> Sources | None:
    """The sources with a keyword of the one call that wraps a model; None where there is none, or it has it."""
    found = rewrite.Found(sources.parse(path))
    calls = [call for call in found.nodes(cst.Call) if is_wrapper(call)]
    if len(calls) != 1 or rewrite.keyword(calls[0], name) is not None:
        return None
    return sources.with_module(
        path, rewrite.replaced(found.module, calls[0], rewrite.with_keyword(calls[0], name, value))
    )


def is_wrapper(call: cst.Call) -> bool:
    """``DistributedDataParallel(model)``, by its name or its usual short one."""
    return rewrite.name_of(call).rpartition(".")[2] in ("DistributedDataParallel", "DDP")


def accumulates(sources: Sources, path: Path) -> int | None:
    """The line of a condition in a loop that holds the optimizer's step but not backward, with no ``no_sync``."""
    found = rewrite.Found(sources.parse(path))
    if any(one.attr.value == "no_sync" for one in found.nodes(cst.Attribute)):
        return None
    for choice in found.nodes(cst.If):
        if found.around(choice, cst.For, cst.While) is None or not _tests_a_remainder(choice.test):
            continue
        inside = _methods(choice.body)
        around = found.around(choice, cst.For, cst.While)
        if "step" in inside and "backward" not in inside and around is not None and "backward" in _methods(around):
            return found.place(choice).start.line
    return None


def _tests_a_remainder(test: cst.BaseExpression) -> bool:
    """``(step + 1) % 4 == 0``: every so many batches, and not by the clock."""
    return any(isinstance(one, cst.BinaryOperation) and isinstance(one.operator, cst.Modulo)
               for one in rewrite.inside(test))  # fmt: skip


def _methods(node: cst.CSTNode) -> set[str]:
    return {
        one.func.attr.value
        for one in rewrite.inside(node)
        if isinstance(one, cst.Call) and isinstance(one.func, cst.Attribute)
    }
