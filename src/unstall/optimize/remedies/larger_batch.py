"""A larger batch: fewer, larger steps. It changes the training, so it is told, and tried only when that is allowed."""

from __future__ import annotations

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit
from unstall.optimize.remedies.loader_workers import main_loader
from unstall.optimize.sources import SourceError
from unstall.text.units import percent

NAME = "larger-batch"
AREA: Area = "memory"
EXACTNESS: Exactness = "training-changing"

_FIXED = {"overhead-bound": 0.6}  # of the model's time, what does not grow with the batch
_FIXED_ELSE = 0.1
_FACTOR = 2


def propose(case: Case) -> list[Proposal] | Unfit:
    """Twice the batch size of the main loop's loader, where a fixed cost a step is worth sharing."""
    loader = main_loader(case)
    if loader is None or loader.call is None or not loader["batch_size"]:
        return Unfit("the main loop draws from no DataLoader with a batch size")
    path = case.user_file(loader.call.file)
    if path is None:
        return Unfit("the loader is made inside a library")
    fixed = case.share("optimizer")
    fixed += case.share("forward", "backward") * _FIXED.get(case.report.verdict.pattern, _FIXED_ELSE)
    size = int(loader["batch_size"]) * _FACTOR
    try:
        found = rewrite.Found(case.sources.parse(path))
        call = found.call(loader.call, lambda one: rewrite.name_of(one).endswith("DataLoader"))
        given = rewrite.keyword(call, "batch_size") if call is not None else None
        if call is None or given is None or not isinstance(given.value, cst.Integer):
            return Unfit("the batch size is not a number where the loader is made")
        changed = rewrite.with_keyword(call, "batch_size", str(size))
        sources = case.sources.with_module(path, rewrite.replaced(found.module, call, changed))
    except SourceError as error:
        return Unfit(str(error))
    return [
        Proposal(
            NAME, f"batch_size={size} ({path.name}:{loader.call.line})", EXACTNESS,
            1 / (1 - fixed * (1 - 1 / _FACTOR)),
            f"{percent(fixed)} of the step hardly grows with the batch; the training is another then",
            sources=sources, key=str(size), work=float(_FACTOR),
        )
    ]  # fmt: skip
