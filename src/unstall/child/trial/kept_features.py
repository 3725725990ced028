"""Prove that what a part of a model gives for a sample may be kept: it is computed again, and in another batch.

The patch's class ``_KeptFeatures`` is met where it is defined. What it gives must be what the part gives now, and what
it gives for the first half of the batch alone must be what it gives for these samples among all: but for rounding, as
far as the part's output moves when weights and inputs are off by one unit in the last place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unstall.child import trial
from unstall.child.trial.batched_calls import alike, perturbed_outputs
from unstall.child.trial.seed import Generators

if TYPE_CHECKING:
    from collections.abc import Callable


def check_class(cls: Any, report: Callable[[str], None], size: float) -> None:
    """Check what the patch's class does from now on; ``report`` gets what is wrong.

    ``size``: how many times as far as one unit in the last place moves it an output may be.
    """
    of = cls.of

    def checked(module: Any, batch: Any) -> Any:
        if not cls.may_keep(module, batch):
            return of(module, batch)
        with trial.Unseen(), Generators():
            kept, half = of(module, batch), module(batch[: len(batch) // 2 or 1])
        moved = perturbed_outputs(module, (batch,))  # under the random numbers of the call that follows
        again = module(batch)  # counted and observed as in the original
        if not alike(again, kept, moved, size):
            report(f"{type(module).__name__} does not give the same for a sample each time")
        part = len(half)
        if not alike(again[:part], half, [output[:part] for output in moved], size):
            report(f"what {type(module).__name__} gives for a sample depends on the others of its batch")
        return kept

    cls.of = checked
