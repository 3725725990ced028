"""Copies to a GPU that the program does not wait for: page-locked batches, copied with ``non_blocking``."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import NotApplicable, Remedy
from unstall.optimize.remedies.loader_workers import with_keywords
from unstall.optimize.source.edit import edited, keyword, with_keyword
from unstall.optimize.source.files import Sources
from unstall.optimize.source.module import SourceModule, dotted
from unstall.text.units import percent

_REMOVED = 0.8  # of the time that the program waits for copies


class AsyncCopies(Remedy):
    """``pin_memory=True`` for the main loop's loader, with ``non_blocking=True`` at its copies to the device."""

    name = "async-copies"
    brief = "on a GPU, `pin_memory` and `non_blocking` together"
    patterns = ("transfer-bound",)
    exactness = "exact"
    """A copy to the device is in order with what the device does after it. Copies back to the host are left alone."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        if not context.on_gpu:
            raise NotApplicable("the model runs on no GPU")
        loader = context.main_loader
        if loader is None:
            raise NotApplicable("the program iterates no DataLoader")
        sources, lines = _without_waiting(context)
        if not lines:
            raise NotApplicable("no copy of a batch to the device was found that waits")
        if not loader.pin_memory:
            sources = with_keywords(replace(context, sources=sources), loader, {"pin_memory": "True"})
        share = context.share("transfer")
        return [
            Proposal(
                f"pin_memory=True, and non_blocking=True at {', '.join(lines)}",
                speedup_without(share, _REMOVED),
                f"copies to the device take {percent(share)} of the step",
                sources=sources,
                key=",".join(lines),
            )
        ]


def _without_waiting(context: RemedyContext) -> tuple[Sources, list[str]]:
    """The sources with ``non_blocking=True`` where the program was seen to copy, and the places."""
    sources, lines = context.sources, []
    for site in context.measurement.sites:
        path = context.user_file(site.file)
        if path is None or not site.seam.startswith("~transfer."):
            continue
        module = sources.module(path)
        tree = with_non_blocking(module, site.line)
        if tree is not module.tree:
            sources = sources.with_module(path, tree)
            lines.append(f"{path.name}:{site.line}")
    return sources, lines


def with_non_blocking(module: SourceModule, line: int) -> cst.Module:
    """The tree with ``non_blocking=True`` at the copies to a device on a line; the same where there are none."""
    calls = [call for call in module.all(cst.Call) if module.is_on(call, line) and _is_copy(call)]
    if not calls:
        return module.tree
    return edited(module.tree, {call: lambda now: with_keyword(now, "non_blocking", "True") for call in calls})


def _is_copy(call: cst.Call) -> bool:
    """``x.cuda()``, ``x.to(device)``, ``x.to("cuda:0")``: not to a data type, not back to the host."""
    if not isinstance(call.func, cst.Attribute) or keyword(call, "non_blocking") is not None:
        return False
    if call.func.attr.value == "cuda":
        return True
    if call.func.attr.value != "to" or not call.args or call.args[0].star:
        return False
    target = call.args[0].value
    if isinstance(target, cst.SimpleString):
        return str(target.evaluated_value).startswith("cuda")
    name = dotted(target)
    return "device" in name.lower() or name.rpartition(".")[2] in ("gpu", "rank", "local_rank")


REMEDY = AsyncCopies()
