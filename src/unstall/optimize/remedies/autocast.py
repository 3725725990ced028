"""Forward and loss in bfloat16 where that is safe, as torch's autocast has it; weights and updates stay in float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.sources import SourceError, Sources
from unstall.records.measurements import Site
from unstall.text.units import percent

NAME = "autocast"
AREA: Area = "compute"
EXACTNESS: Exactness = "close"
"""Within the tolerance of bfloat16, which has 8 bits of precision."""

_MIN_SHARE = 0.4
_INSTRUCTIONS = {"amx_bf16": 0.6, "avx512_bf16": 0.35}
"""What removes how much of the model's time: products of bfloat16 that the processor has instructions for."""
_ON_GPU = 0.4
_BUSY = 0.3  # of the machine's peak: below it, the products are not what takes the time


def propose(case: Case) -> list[Proposal] | Unfit:
    """``with torch.autocast(...)`` from the model's call to the loss, in a program that trains in float32."""
    model = case.measurement.model
    if model.dtype != "torch.float32":
        return Unfit(f"the model is in {model.dtype.removeprefix('torch.') or 'no known type'}")
    share = case.share("forward", "backward")
    if share < _MIN_SHARE or case.report.verdict.pattern == "overhead-bound":
        return Unfit(f"arithmetic takes less than {percent(max(share, _MIN_SHARE))} of the step")
    device = "cuda" if model.device.startswith("cuda") else "cpu"
    removed = _ON_GPU if device == "cuda" else removed_by(cpu_flags())
    if removed is None:
        return Unfit("the processor has no instructions for bfloat16")
    removed *= arithmetic_bound(case.report.throughput.mfu)
    reason = "the model's call and backward are not in one block of the program's own code"
    for forward, backward in _pairs(case):
        path = case.user_file(forward.file)
        if path is None:
            continue
        try:
            sources = with_autocast(case.sources, path, forward.line, backward.line, device)
        except SourceError as error:
            reason = str(error)
            continue
        return [
            Proposal(
                NAME, f"autocast to bfloat16 in {forward.function} ({path.name}:{forward.line})", EXACTNESS,
                predicted_without(share, removed), f"the model takes {percent(share)} of the step in float32",
                sources=sources, arithmetic="bfloat16", key=f"{path.name}:{forward.function}",
            )
        ]  # fmt: skip
    return Unfit(reason)


def removed_by(flags: frozenset[str]) -> float | None:
    """The part of the model's time that a processor with these flags saves; None where it would save nothing."""
    return next((removed for flag, removed in _INSTRUCTIONS.items() if flag in flags), None)


def arithmetic_bound(utilization: float | None) -> float:
    """How much of the model's time is arithmetic, 0 to 1, from the share of the machine's peak that it reaches."""
    return 0.5 if utilization is None else min(1.0, utilization / _BUSY)


def cpu_flags() -> frozenset[str]:
    """What this machine's processor can do, as Linux names it; empty elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    return frozenset(word for line in text.splitlines() if line.startswith("flags") for word in line.split())


def _pairs(case: Case) -> list[tuple[Site, Site]]:
    """The calls of the model and of backward in the same function, with gradients."""
    sites = case.measurement.sites
    backward = [site for site in sites if site.seam == "~backward"]
    return [
        (site, other)
        for site in sites
        if site.seam == "~forward" and site.grad
        for other in backward
        if (other.file, other.function) == (site.file, site.function) and other.line > site.line
    ]


def with_autocast(sources: Sources, path: Path, forward: int, backward: int, device: str) -> Sources:
    """The sources with the statements from the model's line to the loss in a ``with``. Raises SourceError."""
    found = rewrite.Found(sources.parse(path))
    block, first, last = _statements(found, forward, backward)
    kept = block.body[first:last]
    text = f'with torch.autocast("{device}", dtype=torch.bfloat16):\n    pass\n'
    around: Any = cst.parse_statement(text, config=found.module.config_for_parsing)
    inner = [kept[0].with_changes(leading_lines=()), *kept[1:]]
    around = around.with_changes(leading_lines=kept[0].leading_lines, body=around.body.with_changes(body=inner))
    changed: Any = block.with_changes(body=[*block.body[:first], around, *block.body[last:]])
    module = changed if block is found.module else rewrite.replaced(found.module, block, changed)
    return sources.with_module(path, rewrite.with_import(module, "torch"))


def _statements(found: rewrite.Found, forward: int, backward: int) -> tuple[Any, int, int]:
    """(block, first, end): its statements from the model's line to before backward's, less ``zero_grad`` at the end."""
    blocks: list[Any] = [*found.nodes(cst.IndentedBlock), found.module]
    for block in blocks:
        first = _at(found, block, forward)
        end = _at(found, block, backward)
        if first is None or end is None or not isinstance(block.body[first], cst.SimpleStatementLine):
            continue
        while end > first + 1 and _is_zero_grad(block.body[end - 1]):
            end -= 1
        if end > first:
            return block, first, end
    raise SourceError("the model's call and backward are not in one block of the program's own code")


def _at(found: rewrite.Found, block: Any, line: int) -> int | None:
    """The statement of a block that is on a line."""
    for index, statement in enumerate(block.body):
        place = found.place(statement)
        if place.start.line <= line <= place.end.line:
            return index
    return None


def _is_zero_grad(statement: cst.CSTNode) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine) or not isinstance(statement.body[0], cst.Expr):
        return False
    call = statement.body[0].value
    return isinstance(call, cst.Call) and rewrite.name_of(call).endswith("zero_grad")
