"""Evaluation loops that record gradients nobody asks for: ``torch.no_grad()`` around them."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from unstall.measurements import Site
from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.sources import SourceError, Sources

NAME = "no-grad"
AREA: Area = "compute"
EXACTNESS: Exactness = "exact"

_REMOVED = 0.3  # of the forward's time outside of training: what recording the graph costs, by experience


def propose(case: Case) -> list[Proposal] | Unfit:
    """Functions that call the model with gradients on, in a loop, and from which nothing goes backward."""
    trained = {site.function for site in case.measurement.sites if site.seam == "~backward"}
    trained |= {name for site in case.measurement.sites if site.seam == "~backward" for _, name, _ in site.callers}
    found: list[Proposal] = []
    for site in case.measurement.sites:
        path = case.user_file(site.file)
        if site.seam != "~forward" or not site.grad or path is None or site.function in trained:
            continue
        if any(function in trained for _, function, _ in site.callers[:1]):
            continue  # a helper of the training step
        proposal = _proposal(case, path, site)
        if proposal is not None and proposal.id not in {one.id for one in found}:
            found.append(proposal)
    return found or Unfit("no loop calls the model with gradients on and never goes backward")


def _proposal(case: Case, path: Path, site: Site) -> Proposal | None:
    try:
        sources = with_no_grad(case.sources, path, site.function, site.line)
    except SourceError:
        return None
    if sources is None:
        return None
    has_training = any(one.seam == "~backward" for one in case.measurement.sites)
    share = case.share("validation") if has_training else case.share("forward")
    return Proposal(
        NAME, f"no gradients in {site.function} ({path.name}:{site.line})", EXACTNESS,
        predicted_without(share, _REMOVED),
        f"it calls the model for {share:.0%} of the step and never goes backward",
        sources=sources, key=f"{path.name}:{site.function}",
    )  # fmt: skip


def with_no_grad(sources: Sources, path: Path, function: str, line: int) -> Sources | None:
    """A decorator on the function, or a ``with`` around the loop at module level; None where backward is in it."""
    found = rewrite.Found(sources.parse(path))
    target = found.function(function, line)
    if target is not None:
        if _goes_backward(target) or _has_loop(target) is False:
            return None
        decorator = cst.Decorator(cst.parse_expression("torch.no_grad()"))
        lines: dict[str, object] = {"decorators": [decorator, *target.decorators]}
        changed = rewrite.replaced(found.module, target, target.with_changes(**lines))
        return sources.with_module(path, rewrite.with_import(changed, "torch"))
    return None


def _goes_backward(node: cst.CSTNode) -> bool:
    """Whether gradients are asked for in it; a generator counts too, for its caller's steps run in between."""
    return any(
        isinstance(one, (cst.Yield, cst.Await))
        or (isinstance(one, cst.Attribute) and one.attr.value in ("backward", "requires_grad_", "grad"))
        for one in _walk(node)
    )


def _has_loop(node: cst.CSTNode) -> bool:
    return any(isinstance(one, (cst.For, cst.While, cst.CompFor)) for one in _walk(node))


def _walk(node: cst.CSTNode) -> list[cst.CSTNode]:
    found = [node]
    for one in node.children:
        found += _walk(one)
    return found
