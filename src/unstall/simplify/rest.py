"""What becomes of the rest of the step when a component is gone: why a prediction may be far from the measurement.

A prediction takes the component's own time away, and of the rest gives the model back what such a component usually
costs it. But what ran beside the component may have been slower still because of it: it empties the caches, the threads
of an operator fall asleep while it computes, and its own threads and processes take cores.
"""

from __future__ import annotations

import numpy as np

from unstall.simplify.segment import phases_of
from unstall.simplify.trial import Outcome

_FASTER = 1.25  # so many times as fast the rest must be without the component, to be worth a word
_WORTH = 0.1  # of the step without the component, that it must gain by this


def told(outcome: Outcome) -> str | None:
    """One line for a person on the rest of the step, where it is much faster without the component."""
    # The median: one disturbed segment does not move it.
    beside, without = (phases_of(segments, np.median) for segments in (outcome.base_segments, outcome.arm_segments))
    if not beside or not without:
        return None
    gained = {name: seconds - without.get(name, 0.0) for name, seconds in beside.items()}
    own = max(gained, key=lambda name: gained[name])
    before = sum(seconds for name, seconds in beside.items() if name != own)
    after = sum(seconds for name, seconds in without.items() if name != own)
    if before < _FASTER * after or before - after < _WORTH * sum(without.values()):
        return None
    most = max((name for name in beside if name != own), key=lambda name: gained[name])
    return (
        f"the rest of the step takes {before * 1e3:.3g} ms beside it, {after * 1e3:.3g} ms without it "
        f"({most}: {beside[most] * 1e3:.3g} and {without.get(most, 0.0) * 1e3:.3g} ms): cold caches, sleeping threads "
        "or taken cores, which a prediction knows only roughly"
    )
