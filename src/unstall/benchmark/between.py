"""What recurs between training steps and is none of them: evaluation by hand, the end of an epoch, a long pause.

A step runs from one boundary to the next, so the time between two of them is in one, and the mean step contains it.
This says how much it is, so that the step that is shown is the one that the median shows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unstall.benchmark.steps import Bools, Loop
from unstall.benchmark.thresholds import LONG, NOTABLE_BETWEEN, RARE
from unstall.child.seams.modules import FORWARD
from unstall.records.measurements import SeamSite
from unstall.records.run import Between


def between(loop: Loop, chosen: Bools, sites: Sequence[SeamSite]) -> Between | None:
    """What lies between the chosen steps; None where it hardly takes any time, or happened once only.

    ``sites``: where the program calls the model and its environments, to name the function that evaluates.
    """
    at_boundary = _gaps(loop)
    durations = loop.durations[chosen]
    usual = durations[~at_boundary[chosen]]
    if at_boundary.sum() < 2 or not at_boundary[chosen].any() or not len(usual):
        return None
    excess = np.clip(durations[at_boundary[chosen]] - usual.mean(), 0, None)
    if excess.sum() < NOTABLE_BETWEEN * durations.sum():
        return None
    evaluates = bool(loop.validation_calls[at_boundary & chosen].any())
    quiet = [site for site in sites if evaluates and _evaluates(site, loop)]
    file, function, line = _named(quiet[0]) if quiet else ("", "", 0)
    return Between(
        mean_s=float(excess.sum() / len(durations)),
        each_s=float(excess.mean()),
        count=len(excess),
        function=function,
        file=file,
        line=line,
    )


def _evaluates(site: SeamSite, loop: Loop) -> bool:
    if loop.kind == "env":  # a policy acts without gradients in every step
        return site.evaluates
    return site.seam == FORWARD.event and not site.grad


def _gaps(loop: Loop) -> Bools:
    """The steps that hold something else, of all: an occurrence may be in a step that is not measured."""
    if loop.at_boundary.all():
        return loop.at_boundary
    long = ~loop.at_boundary & (loop.durations > LONG * np.median(loop.durations[~loop.at_boundary]))
    long[0] = False  # where everything starts
    return loop.at_boundary | long if long.sum() <= RARE * len(loop) else loop.at_boundary


def _named(site: SeamSite) -> tuple[str, str, int]:
    """File, function and line of the innermost function that has a name: no comprehension, no module."""
    frames = [(site.file, site.function, site.line), *site.callers]
    return next((frame for frame in frames if not frame[1].startswith("<")), frames[0])
