"""Copies to a GPU that the program does not wait for: page-locked batches, copied with ``non_blocking``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.remedies.loader_workers import main_loader, with_keywords
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "async-copies"
AREA: Area = "communication"
EXACTNESS: Exactness = "exact"
"""A copy to the device is in order with what the device does after it. Copies back to the host are left as they are."""

_REMOVED = 0.8  # of the time that the program waits for copies


def propose(case: Case) -> list[Proposal] | Unfit:
    """``pin_memory=True`` for the main loop's loader, with ``non_blocking=True`` at its copies to the device."""
    if not case.measurement.model.device.startswith("cuda"):
        return Unfit("the model runs on no GPU")
    share = case.share("transfer")
    loader = main_loader(case)
    if loader is None or loader.call is None or case.user_file(loader.call.file) is None:
        return Unfit("the loader is not made in the program's own code")
    sources, lines = case.sources, []
    for site in case.measurement.sites:
        path = case.user_file(site.file)
        if path is None or not site.seam.startswith("~transfer."):
            continue
        try:
            sources, changed = with_non_blocking(sources, path, site.line)
        except SourceError as error:
            return Unfit(str(error))
        if changed:
            lines.append(f"{path.name}:{site.line}")
    if not lines:
        return Unfit("no copy of a batch to the device was found that waits")
    if not loader["pin_memory"]:
        copied = replace(case, sources=sources)
        pinned = with_keywords(copied, loader, {"pin_memory": "True"}, title="", predicted=1.0, because="")
        if pinned is None or pinned.sources is None:
            return Unfit("the call that makes the loader cannot be found in the source")
        sources = pinned.sources
    return [
        Proposal(
            NAME, f"pin_memory=True, and non_blocking=True at {', '.join(lines)}", EXACTNESS,
            predicted_without(share, _REMOVED), f"copies to the device take {percent(share)} of the step",
            sources=sources, key=",".join(lines),
        )
    ]  # fmt: skip


def with_non_blocking(sources: Sources, path: Path, line: int) -> tuple[Sources, bool]:
    """The sources with ``non_blocking=True`` at the copies to a device on a line, and whether there are any."""
    found = rewrite.Found(sources.parse(path))
    calls: set[cst.CSTNode] = {
        call
        for call in found.nodes(cst.Call)
        if found.place(call).start.line <= line <= found.place(call).end.line and _is_copy(call)
    }
    if not calls:
        return sources, False
    changed = rewrite.with_calls(found.module, calls, lambda call: rewrite.with_keyword(call, "non_blocking", "True"))
    return sources.with_module(path, changed), True


def _is_copy(call: cst.Call) -> bool:
    """``x.cuda()``, ``x.to(device)``, ``x.to("cuda:0")``: not to a data type, not back to the host."""
    if not isinstance(call.func, cst.Attribute) or rewrite.keyword(call, "non_blocking") is not None:
        return False
    if call.func.attr.value == "cuda":
        return True
    if call.func.attr.value != "to" or not call.args or call.args[0].star:
        return False
    where = call.args[0].value
    if isinstance(where, cst.SimpleString):
        return str(where.evaluated_value).startswith("cuda")
    name = rewrite.dotted(where)
    return "device" in name.lower() or name.rpartition(".")[2] in ("gpu", "rank", "local_rank")
