"""Whether a loss of the changed program overflows where the outputs of models are large, and the original's does not.

They grow large in longer trainings, and where one goes astray. What the two losses are there is not compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unstall.optimize.sameness import ObservedTensor
from unstall.prove import thresholds
from unstall.prove.runner import WholeRun
from unstall.records.proof import Difference

WHERE = f" where a model's outputs are {thresholds.STRESS:,.0f} times as large"
PLAN: Mapping[str, Any] = {"stress": {"factor": float(thresholds.STRESS)}}
"""Of a run of one step, beside what it is watched by."""
_LOSS = "loss."


def first_difference(original: WholeRun, changed: WholeRun) -> Difference | None:
    """The first loss of the first step that is finite in the original alone."""
    for before, after in zip(_losses(original), _losses(changed)):
        if before.is_like(after) and _is_finite(before) and not _is_finite(after):
            return Difference(kind="values", place=before.place, detail="it overflows, and the original's does not")
    return None


def _losses(run: WholeRun) -> list[ObservedTensor]:
    return [tensor for tensor in run.tensors if tensor.what.startswith(_LOSS) and not tensor.step]


def _is_finite(tensor: ObservedTensor) -> bool:
    return bool(np.isfinite(tensor.array().astype(np.float64)).all())
