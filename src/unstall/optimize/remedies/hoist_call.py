"""What a loop computes in each turn from the same values is computed once, before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import computed_again, share_on
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_by_file
from unstall.optimize.rewrites.hoist_call import hoisted, invariant_calls
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import HOISTING_SAVES, LEAST_SHARE
from unstall.text.units import percent

_NONE = "no loop of your own calls a layer in each turn with what it was given before"


class HoistCall(Remedy):
    """The lines, and those that lead to them, whose operators were given what they were given before."""

    name = "hoist-call"
    brief = "a layer that a loop calls in each turn with the same arguments is called once, before the loop"
    needs = (
        "`self.layer(x)` in a loop or comprehension that neither binds nor changes `x`, where the run saw it repeated"
    )
    patterns = ("recompute-bound", "compute-bound", "overhead-bound")
    exactness = "close"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return proposals_by_file(_again_by_file(context).items(), partial(_proposal, context), _NONE)


def _again_by_file(context: RemedyContext) -> dict[Path, dict[int, float]]:
    """By file and line: share of the step in what is computed again there, or in what the line calls."""
    files: dict[Path, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for frames, share in computed_again(context):
        for file, line in {(frame.file, frame.line) for frame in frames}:
            path = context.user_file(file)
            if path is not None:
                files[path][line] += share
    return files


def _proposal(context: RemedyContext, path: Path, of_line: Mapping[int, float]) -> Proposal:
    module = context.sources.module(path)
    found = [(call, loop) for call, loop in invariant_calls(module) if share_on(of_line, module.lines(call))]
    calls = [call for call, _ in found]
    share = share_on(of_line, module.lines(*calls))
    if share < LEAST_SHARE:
        raise NotApplicable(_NONE)
    first = min(module.first_line(call) for call in calls)
    return Proposal(
        f"calls with the same arguments in each turn are made once ({path.name}:{first})",
        speedup_without(share, HOISTING_SAVES),
        f"what was computed before takes {percent(share)} of the step",
        sources=context.sources.with_module(path, hoisted(module, found)),
        key=context.key(path),
        lines=Lines.of(path, module, *calls),
    )


REMEDY = HoistCall()
