"""Batches that a loader's worker puts together in memory of its own are copied once more, to be sent: shared at once.

The loader's own ``default_collate`` stacks tensors straight into shared memory; a ``collate_fn`` with ``torch.stack``
does not.
"""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.remedies.loader_workers import main_loader
from unstall.optimize.shares import hot_lines
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "shared-batches"
AREA: Area = "memory"
EXACTNESS: Exactness = "exact"

_MIN_SHARE = 0.02
_NAME = "_stacked"
DEFINITION = '''def _stacked(parts):
    """torch.stack; in a loader's worker, straight into the memory that it shares with the program."""
    if len({part.dtype for part in parts}) == 1 and not any(part.requires_grad for part in parts):
        return torch.utils.data.default_collate(parts)
    return torch.stack(parts)
'''


def propose(case: Case) -> list[Proposal] | Unfit:
    """The stacks in the main loader's ``collate_fn``, where workers run it."""
    loader = main_loader(case)
    if loader is None or not loader["num_workers"]:
        return Unfit("no loader workers send batches")
    path = case.user_file(loader["collate_file"])
    if path is None:
        return Unfit("the batches are not put together in the program's own code")
    try:
        sources, lines = with_shared(case.sources, path, loader["collate_name"], int(loader["collate_line"]))
    except SourceError as error:
        return Unfit(str(error))
    share = min(1.0, sum(share for file, line, share in hot_lines(case) if file == path and line in lines))
    if share < _MIN_SHARE:
        return Unfit(f"stacking tensors to a batch takes {percent(share)} of the step")
    where = ", ".join(map(str, sorted(lines)))
    return [
        Proposal(
            NAME, f"batches stacked in shared memory ({path.name}:{where})", EXACTNESS, predicted_without(share),
            f"stacking takes {percent(share)} of the step, and copying the batch to shared memory about as much again",
            sources=sources, key=f"{path.name}:{where}",
        )
    ]  # fmt: skip


def with_shared(sources: Sources, path: Path, name: str, line: int) -> tuple[Sources, set[int]]:
    """The sources with the stacks of the function changed, and their lines. Raises SourceError."""
    found = rewrite.Found(sources.parse(path))
    function = found.function(name, line)
    if function is None:
        raise SourceError(f"{name} was not found again")
    within = set(rewrite.inside(function))
    calls = [call for call in found.nodes(cst.Call) if call in within and _is_stack(call)]
    if not calls:
        raise SourceError(f"{name} stacks no tensors with torch.stack")
    clash = rewrite.clashing(found.module, (_NAME, "torch"))
    if clash:
        raise SourceError(f"{path.name} uses the name {clash} for something else")
    lines = {line for call in calls for line in found.lines_of(call)}
    changed = rewrite.with_calls(
        found.module, calls, lambda call: call.with_changes(func=cst.Name(_NAME), args=[_alone(call.args[0])])
    )
    return sources.with_module(path, rewrite.with_definition(changed, DEFINITION)), lines


def _alone(argument: cst.Arg) -> cst.Arg:
    return argument.with_changes(comma=cst.MaybeSentinel.DEFAULT, keyword=None, equal=cst.MaybeSentinel.DEFAULT)


def _is_stack(call: cst.Call) -> bool:
    """``torch.stack`` of one value along the first axis."""
    if rewrite.name_of(call) != "torch.stack" or any(argument.star for argument in call.args):
        return False
    names = [argument.keyword.value if argument.keyword is not None else "" for argument in call.args]
    if names == [""]:
        return True
    first = isinstance(call.args[-1].value, cst.Integer) and call.args[-1].value.value == "0"
    return names in (["", ""], ["", "dim"], ["", "axis"]) and first
