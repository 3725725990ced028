"""Evaluation and inference that record gradients nobody asks for: ``torch.no_grad()`` around them."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.remedies.threads import with_line_after_imports
from unstall.optimize.sources import SourceError, Sources
from unstall.records.measurements import Site
from unstall.text.units import percent

NAME = "no-grad"
AREA: Area = "compute"
EXACTNESS: Exactness = "exact"

_REMOVED = 0.3  # of the forward's time outside of training: what recording the graph costs, by experience
_ASKING = {"backward", "grad", "autograd", "optim", "enable_grad", "requires_grad_"}
_OFF = "torch.set_grad_enabled(False)"


def propose(case: Case) -> list[Proposal] | Unfit:
    """Functions that call the model with gradients on, and from which nothing goes backward."""
    trains = any(site.seam == "~backward" for site in case.measurement.sites) or bool(case.probe.optimizers)
    found: list[Proposal] = []
    for site in case.measurement.sites:
        if site.seam != "~forward" or not site.grad:
            continue
        proposal = _beside_training(case, site) if trains else _without_training(case, site)
        if proposal is not None and proposal.id not in {one.id for one in found}:
            found.append(proposal)
    return found or Unfit("no loop calls the model with gradients on and never goes backward")


def _beside_training(case: Case, site: Site) -> Proposal | None:
    """A function with a loop of its own, that is no part of the training step."""
    trained = {one.function for one in case.measurement.sites if one.seam == "~backward"}
    trained |= {name for one in case.measurement.sites if one.seam == "~backward" for _, name, _ in one.callers}
    path = case.user_file(site.file)
    if path is None or site.function in trained or any(name in trained for _, name, _ in site.callers[:1]):
        return None
    try:
        sources = with_no_grad(case.sources, path, site.function, site.line)
    except SourceError:
        return None
    return _proposal(case, sources, path, site.function, site.line, case.share("validation"))


def _without_training(case: Case, site: Site) -> Proposal | None:
    """The nearest function around the call that has a loop, or the call's own; at module level, the whole program."""
    frames = [(site.file, site.function, site.line), *site.callers]
    for loop in (True, False):
        for file, function, line in frames if loop else frames[:1]:
            path = case.user_file(file)
            if path is None:
                continue
            try:
                if function == "<module>":
                    sources = with_gradients_off(case.sources, path)
                else:
                    sources = with_no_grad(case.sources, path, function, line, loop=loop)
            except SourceError:
                continue
            if sources is not None:
                return _proposal(case, sources, path, function, line, case.share("forward"))
    return None


def _proposal(
    case: Case, sources: Sources | None, path: Path, function: str, line: int, share: float
) -> Proposal | None:
    if sources is None:
        return None
    return Proposal(
        NAME, f"no gradients in {function} ({path.name}:{line})", EXACTNESS,
        predicted_without(share, _REMOVED),
        f"it calls the model for {percent(share)} of the step and never goes backward",
        sources=sources, key=f"{path.name}:{function}",
    )  # fmt: skip


def with_gradients_off(sources: Sources, path: Path) -> Sources | None:
    """A line after the imports of a script that never asks for a gradient; None where it does."""
    if any(isinstance(one, cst.Name) and one.value in _ASKING for one in rewrite.walk(sources.parse(path))):
        return None
    return with_line_after_imports(sources, path, _OFF)


def with_no_grad(sources: Sources, path: Path, function: str, line: int, *, loop: bool = True) -> Sources | None:
    """A decorator on the function; None where backward is in it, or, if that is asked for, no loop."""
    found = rewrite.Found(sources.parse(path))
    target = found.function(function, line)
    if target is not None:
        if _goes_backward(target) or (loop and not _has_loop(target)):
            return None
        decorator = cst.Decorator(cst.parse_expression("torch.no_grad()"))
        lines: dict[str, object] = {"decorators": [*target.decorators, decorator]}
        changed = rewrite.replaced(found.module, target, target.with_changes(**lines))
        return sources.with_module(path, rewrite.with_import(changed, "torch"))
    return None


def _goes_backward(node: cst.CSTNode) -> bool:
    """Whether gradients are asked for in it; a generator counts too, for its caller's steps run in between."""
    return any(
        isinstance(one, (cst.Yield, cst.Await))
        or (isinstance(one, cst.Attribute) and one.attr.value in ("backward", "requires_grad_", "grad"))
        for one in rewrite.walk(node)
    )


def _has_loop(node: cst.CSTNode) -> bool:
    return any(isinstance(one, (cst.For, cst.While, cst.CompFor)) for one in rewrite.walk(node))
