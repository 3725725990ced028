"""Forward and loss in bfloat16 where that is safe, as torch's autocast has it; weights and updates stay in float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import libcst as cst

from unstall.child.seams import autograd, modules
from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, first_of
from unstall.optimize.source.edit import replaced, statement
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.module import SourceModule, dotted
from unstall.optimize.source.toplevel import with_import
from unstall.optimize.thresholds import AUTOCAST_SAVES, GPU_AUTOCAST_SAVES, LEAST_ARITHMETIC
from unstall.records.measurements import SeamSite
from unstall.text.units import percent

_APART = "the model's call and backward are not in one block of the program's own code"


class Autocast(Remedy):
    """``with torch.autocast(...)`` from the model's call to the loss, in a program that trains in float32."""

    name = "autocast"
    brief = "from the model's call to the loss in bfloat16, where the processor or GPU has it"
    needs = "a float32 model, trained in your own code; a processor with bfloat16 instructions, or a GPU"
    patterns = ("compute-bound",)
    exactness = "reduced"
    """bfloat16 has 8 bits of precision, float32 24."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        dtype = context.measurement.model.dtype
        if dtype != "torch.float32":
            raise NotApplicable(f"the model is in {dtype.removeprefix('torch.') or 'no known type'}")
        share = context.share("forward", "backward")
        if share < LEAST_ARITHMETIC or context.report.verdict.pattern == "overhead-bound":
            raise NotApplicable(f"arithmetic takes less than {percent(max(share, LEAST_ARITHMETIC))} of the step")
        removed = GPU_AUTOCAST_SAVES if context.on_gpu else removed_by(cpu_flags())
        if removed is None:
            raise NotApplicable("the processor has no instructions for bfloat16")
        saved = removed * context.arithmetic
        return [first_of(_pairs(context), lambda pair: _proposal(context, *pair, saved), _APART)]


def _proposal(context: RemedyContext, forward: SeamSite, backward: SeamSite, removed: float) -> Proposal:
    path = context.user_file(forward.file)
    if path is None:
        raise NotApplicable(_APART)
    share = context.share("forward", "backward")
    device = "cuda" if context.on_gpu else "cpu"
    tree = with_autocast(context.sources.module(path), forward.line, backward.line, device)
    return Proposal(
        f"autocast to bfloat16 in {forward.function} ({path.name}:{forward.line})",
        speedup_without(share, removed),
        f"the model takes {percent(share)} of the step in float32",
        sources=context.sources.with_module(path, tree),
        key=context.key(path, forward.function),
    )


def removed_by(flags: frozenset[str]) -> float | None:
    """The part of the model's time that a processor with these flags saves; None where it would save nothing."""
    return next((removed for flag, removed in AUTOCAST_SAVES.items() if flag in flags), None)


def cpu_flags() -> frozenset[str]:
    """What this machine's processor can do, as Linux names it; empty elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    return frozenset(word for line in text.splitlines() if line.startswith("flags") for word in line.split())


def _pairs(context: RemedyContext) -> list[tuple[SeamSite, SeamSite]]:
    """The calls of the model and of backward in the same function, with gradients."""
    sites = context.measurement.sites
    backward = [site for site in sites if site.seam == autograd.BACKWARD.event]
    return [
        (site, other)
        for site in sites
        if site.seam == modules.FORWARD.event and site.grad
        for other in backward
        if (other.file, other.function) == (site.file, site.function) and other.line > site.line
    ]


def with_autocast(module: SourceModule, forward: int, backward: int, device: str) -> cst.Module:
    """The tree with the statements from the model's line to the loss in a ``with``. Raises NotApplicable."""
    block, first, end = _statements(module, forward, backward)
    torch = module.alias("torch")
    around = statement(
        module.tree, f'with {torch or "torch"}.autocast("{device}", dtype={torch or "torch"}.bfloat16):\n    pass\n'
    )
    top, *others = block.body[first:end]
    inner = [top.with_changes(leading_lines=()), *others]
    around = around.with_changes(leading_lines=top.leading_lines, body=around.body.with_changes(body=inner))
    changed: Any = block.with_changes(body=[*block.body[:first], around, *block.body[end:]])
    tree = changed if block is module.tree else replaced(module.tree, block, changed)
    return tree if torch else with_import(tree, "torch")


def _statements(module: SourceModule, forward: int, backward: int) -> tuple[Any, int, int]:
    """(block, first, end): its statements from the model's line to before backward's, less ``zero_grad`` at the end."""
    blocks: list[Any] = [*module.all(cst.IndentedBlock), module.tree]
    for block in blocks:
        first = _index_at(module, block, forward)
        end = _index_at(module, block, backward)
        if first is None or end is None or not isinstance(block.body[first], cst.SimpleStatementLine):
            continue
        while end > first + 1 and _is_zero_grad(block.body[end - 1]):
            end -= 1
        if end > first:
            return block, first, end
    raise NotApplicable(_APART)


def _index_at(module: SourceModule, block: Any, line: int) -> int | None:
    """The statement of a block that is on a line."""
    return next((index for index, inner in enumerate(block.body) if module.is_on(inner, line)), None)


def _is_zero_grad(line: cst.CSTNode) -> bool:
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(line.body[0], cst.Expr):
        return False
    call = line.body[0].value
    return isinstance(call, cst.Call) and dotted(call.func).endswith("zero_grad")


REMEDY = Autocast()
