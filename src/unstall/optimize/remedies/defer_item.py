"""``running += loss.item()`` waits for the device in every step; the sum can stay there and be read where it is used.

It is summed in float64 and in the same order, as Python sums its floats: the number read is the same to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import Assignment, BaseAssignment, ComprehensionScope, Scope

from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import NotApplicable, Remedy, proposals_of
from unstall.optimize.source.edit import Edit, edited, followed_by, put, statement
from unstall.optimize.source.module import SourceModule
from unstall.text.units import percent

_REMOVED = 0.7  # of the time that the host waits for the device
_NOWHERE = "no sum of numbers read from tensors was found that may be read later"


class DeferItem(Remedy):
    """The sums in the loops of the training step, all of a file at once."""

    name = "defer-item"
    brief = "`running += loss.item()` is summed on the GPU and read where it is used"
    patterns = ("sync-bound",)
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        if not context.on_gpu:
            raise NotApplicable("the model runs on no GPU: to read a number waits for nothing")
        lines: dict[Path, set[int]] = {}
        for site in context.measurement.sites:
            path = context.user_file(site.file)
            if site.seam == "~backward" and path is not None:
                lines.setdefault(path, set()).add(site.line)
        return proposals_of(lines.items(), lambda candidate: _proposal(context, *candidate), _NOWHERE)


def _proposal(context: RemedyContext, path: Path, steps: set[int]) -> Proposal:
    """All sums of a file, in the loops that go backward on these lines."""
    module, share = context.sources.module(path), context.share("sync")
    sums = find(module, steps)
    if not sums:
        raise NotApplicable(_NOWHERE)
    names, line = ", ".join(one.name for one in sums), module.first_line(sums[0].added)
    return Proposal(
        f"{names} summed on the device ({path.name}:{line})",
        speedup_without(share, _REMOVED),
        f"waiting for the device takes {percent(share)} of the step",
        sources=context.sources.with_module(path, deferred(module, sums)),
        key=path.name,
    )


@dataclass(frozen=True)
class Sum:
    """A sum of numbers read from tensors, in a loop."""

    name: str
    loop: cst.For | cst.While
    added: cst.AugAssign
    """``name += tensor.item()``."""
    reads: tuple[cst.Name, ...]
    """Where the sum is read inside the loop."""


def find(module: SourceModule, lines: Iterable[int]) -> list[Sum]:
    """The sums in the innermost loops around these lines that are read rarely, or only after the loop."""
    loops = dict.fromkeys(loop for line in lines if (loop := module.innermost(line, cst.For, cst.While)) is not None)
    found = []
    for loop in loops:
        for line in loop.body.body:
            if isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.AugAssign):
                one = _sum(module, loop, line.body[0])
                if one is not None:
                    found.append(one)
    return found


def _sum(module: SourceModule, loop: Any, added: cst.AugAssign) -> Sum | None:
    """The sum, if it is a number before the loop and nothing reads it in every step."""
    if not isinstance(added.target, cst.Name) or not isinstance(added.operator, cst.AddAssign) or not _is_item(added):
        return None
    name = added.target.value
    scope = module.scope(added.target)
    assignments = list(scope[name])
    if not all(_is_own(assignment, scope) for assignment in assignments):
        return None
    starts = [assignment.node for assignment in assignments if not _is_added_to(module, assignment)]  # type: ignore[attr-defined]
    before = [node for node in starts if module.first_line(node) < module.first_line(loop)]
    if not before or not all(_is_number(module, node) for node in starts):
        return None
    stores = [assignment.node for assignment in assignments]  # type: ignore[attr-defined]
    reads = [access.node for assignment in assignments for access in assignment.references]
    inside = [node for node in dict.fromkeys([*stores, *reads]) if loop in module.ancestors(node)]
    if any(node is not added.target and not _is_rare(module, loop, node) for node in inside):
        return None
    return Sum(name, loop, added, tuple(node for node in inside if node in reads))  # type: ignore[arg-type]


def _is_item(added: cst.AugAssign) -> bool:
    """Whether what is added is ``tensor.item()`` of a name."""
    call = added.value
    if not isinstance(call, cst.Call) or call.args or not isinstance(call.func, cst.Attribute):
        return False
    return call.func.attr.value == "item" and isinstance(call.func.value, cst.Name)


def _is_own(assignment: BaseAssignment, scope: Scope) -> bool:
    """Whether a name is bound and read in this scope only: no function may see it, and it is no other scope's."""
    if not isinstance(assignment, Assignment) or assignment.scope is not scope:
        return False
    scopes = {access.scope for access in assignment.references}
    return all(one is scope or (isinstance(one, ComprehensionScope) and one.parent is scope) for one in scopes)


def _is_added_to(module: SourceModule, assignment: BaseAssignment) -> bool:
    return isinstance(module.parent(assignment.node), cst.AugAssign)  # type: ignore[attr-defined]


def _is_number(module: SourceModule, target: cst.CSTNode) -> bool:
    """Whether a name is the target of a plain assignment of a number."""
    above = module.parent(target)
    assigned = module.parent(above) if isinstance(above, cst.AssignTarget) else None
    return isinstance(assigned, cst.Assign) and isinstance(assigned.value, (cst.Integer, cst.Float))


def _is_rare(module: SourceModule, loop: Any, node: cst.CSTNode) -> bool:
    """Whether a node of the loop is in a branch, so that it is not reached in every step."""
    lineage = [node, *module.ancestors(node)]
    own = lineage[: lineage.index(loop.body)]
    return isinstance(own[-1], cst.If) and len(own) > 1 and own[-2] is not own[-1].test


def deferred(module: SourceModule, sums: list[Sum]) -> cst.Module:
    """The tree with the sums on the device, read where they are used and after the loop."""
    edits: dict[cst.CSTNode, Edit] = {}
    for one in sums:
        tensor: Any = one.added.value
        edits[tensor] = put(cst.parse_expression(f"{module.code(tensor.func.value)}.detach().double()"))
        edits |= {read: put(cst.parse_expression(f"float({one.name})")) for read in one.reads}
    for loop in dict.fromkeys(one.loop for one in sums):
        after = [statement(module.tree, f"{one.name} = float({one.name})") for one in sums if one.loop is loop]
        edits[loop] = followed_by(*after)
    return edited(module.tree, edits)


REMEDY = DeferItem()
