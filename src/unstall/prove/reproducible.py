"""Whether the changed program does the same twice where the original does: else nothing can be traced back.

Results that are put together as threads finish are off by rounding in each run, by another one in each.
"""

from __future__ import annotations

from collections.abc import Sequence

from unstall.prove.left_behind.effects_comparison import EffectsComparison
from unstall.prove.runner import WholeRun
from unstall.prove.timing import ProofPair, own_pairs


def lost(pairs: Sequence[ProofPair]) -> str | None:
    """In words, what differs between runs of the changed program and not between the original's; None where nothing.

    ``pairs``: whole runs that nothing watched, of which those under the program's own seeds are asked.
    """
    own = own_pairs(pairs)
    if len(own) < 2 or _first_difference([pair.original for pair in own]):
        return None
    difference = _first_difference([pair.changed for pair in own])
    if difference is None:
        return None
    return f"it does not do the same twice ({difference}), and the original does"


def _first_difference(runs: Sequence[WholeRun]) -> str | None:
    """Between the first of these and another, to the last bit."""
    comparison = EffectsComparison([runs[0].effects])
    differences = (comparison.first(run.effects) for run in runs[1:])
    return next((str(difference) for difference in differences if difference is not None), None)
