"""What is computed again from the same values is kept, until these are others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import by_function, computed_again
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.rewrites.keep_results import layer_calls, with_kept_calls, with_kept_method
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import KEPT_RESULTS_SAVE, LEAST_SHARE
from unstall.text.units import percent


class KeepResults(Remedy):
    """The lines whose operators were given what they were given before."""

    name = "keep-results"
    brief = "a layer called with the same values, or a method that unpacks its module's tensors, keeps its result"
    needs = "a model of your own, on a CPU, that runs without gradients there: inference, or constants of a training"
    patterns = ("recompute-bound", "compute-bound", "overhead-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return proposals_by_file(
            _functions(context),
            partial(_proposal, context),
            "no line of your own computes again what it has computed before",
        )


def _functions(context: RemedyContext) -> Iterator[tuple[Path, cst.FunctionDef, dict[int, float]]]:
    """The functions in which something is computed again, the most first; by line, its share of the step."""
    files: dict[Path, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for frames, share in computed_again(context):
        path = context.user_file(frames[-1].file)
        if path is not None:
            files[path][frames[-1].line] += share
    for (path, function), of_line in sorted(
        by_function(context, files).items(), key=lambda item: -sum(item[1].values())
    ):
        yield path, function, of_line


def _proposal(context: RemedyContext, path: Path, function: cst.FunctionDef, of_line: Mapping[int, float]) -> Proposal:
    module, name = context.sources.module(path), function.name.value
    calls = [call for line in of_line for call in layer_calls(module, line)]
    share = sum(of_line.values())
    if share < LEAST_SHARE:
        raise NotApplicable(f"what {name} computes again takes {percent(share)} of the step")
    changed = with_kept_calls(module, calls) if calls else with_kept_method(module, function)
    return Proposal(
        f"{name} keeps what it computes ({path.name}:{min(of_line)})",
        speedup_without(share, KEPT_RESULTS_SAVE),
        f"what it has computed before takes {percent(share)} of the step",
        sources=context.sources.with_module(path, changed),
        key=context.key(path, module.full_name(function)),
        lines=Lines.of(path, module, *(calls or (function,))),
    )


REMEDY = KeepResults()
