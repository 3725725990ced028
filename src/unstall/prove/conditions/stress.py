"""Whether a loss of the changed program tells as well as the original's that a training goes astray.

There outputs of models grow large, or are no numbers any more. A loss that overflows before the original's does is
wrong; one that stays small, or a number, hides what has happened, and stops teaching anything. So do weights that stay
numbers where the original's are none any more: gradients that were no numbers are set to zero, say. Where outputs are
small, the gradients that an optimizer is given must be as small: a limit of their norm is no norm that is always set.
And those of a part of a loss are that part of its gradients, which a gradient that is written by hand may forget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unstall.optimize.sameness import ObservedTensor
from unstall.prove import thresholds
from unstall.prove.runner import WholeRun
from unstall.records.proof import Difference

_LOSS, _WEIGHTS, _GRADIENTS = "loss.", "weights.", "gradients."


class Stress(NamedTuple):
    """What is done to a model's outputs."""

    plan: Mapping[str, Any]
    """Of a run of one step, beside what it is watched by."""
    where: str
    """In words that follow "not the same"."""
    tells_less: Callable[[ObservedTensor, ObservedTensor], str]
    """In words, in what the changed program's loss, the second, does; nothing where it does not."""
    reaches: str = ""
    """What it is asked of as well as of losses, by the beginning of its name."""
    compared: str = "losses"
    """In words."""


def first_difference(original: WholeRun, changed: WholeRun, stress: Stress) -> Difference | None:
    """The first loss of the first step, or weight or gradient after it, that tells less than the original's."""
    pairs = [*zip(_losses(original), _losses(changed))]
    if stress.reaches:
        pairs += zip(_after_step(original, stress.reaches), _after_step(changed, stress.reaches))
    for before, after in pairs:
        detail = stress.tells_less(before, after) if before.is_like(after) else ""
        if detail:
            return Difference(kind="values", place=before.place, detail=detail)
    return None


def _of_large_outputs(before: ObservedTensor, after: ObservedTensor) -> str:
    """An original that overflows itself may well do so no more."""
    if not _is_finite(before):
        return ""
    if not _is_finite(after):
        return "it overflows, and the original's does not"
    if _largest(after) < (1 - thresholds.LESS_UNDER_STRESS) * _largest(before):
        return f"it is {_largest(after):.4g}, and the original's {_largest(before):.4g}"
    return ""


def _of_no_numbers(before: ObservedTensor, after: ObservedTensor) -> str:
    return "it is a number, and the original's is none" if _is_finite(after) and not _is_finite(before) else ""


def _of_small_outputs(before: ObservedTensor, after: ObservedTensor) -> str:
    if before.what.startswith(_LOSS) or not (_is_finite(before) and _is_finite(after)):
        return ""
    size, other = _norm(before), _norm(after)
    if other <= thresholds.LARGER_WHERE_CALM * size + thresholds.LEAST_GRADIENT:
        return ""
    return f"its norm is {other:.2g}, and that of the original's {size:.2g}"


def _of_a_part_of_a_loss(before: ObservedTensor, after: ObservedTensor) -> str:
    if before.what.startswith(_LOSS) or not (_is_finite(before) and _is_finite(after)):
        return ""
    size, apart = _norm(before), _norm_of(after.array().astype(np.float64) - before.array().astype(np.float64))
    if apart <= thresholds.APART_WHERE_SCALED * size + thresholds.LEAST_GRADIENT:
        return ""
    return f"its norm is {_norm(after):.2g}, and that of the original's {size:.2g}"


STRESSES = (
    Stress(
        {"stress": {"factor": float(thresholds.STRESS)}},
        f" where a model's outputs are {thresholds.STRESS:,.0f} times as large",
        _of_large_outputs,
    ),
    Stress(
        {"stress": {"nan": True}},
        " where a model gives what is not a number",
        _of_no_numbers,
        _WEIGHTS,
        "losses and weights",
    ),
    Stress(
        {"stress": {"factor": 1 / float(thresholds.STRESS)}},
        f" where a model's outputs are {thresholds.STRESS:,.0f} times as small",
        _of_small_outputs,
        _GRADIENTS,
        "gradients",
    ),
    Stress(
        {"stress": {"loss": 1 / float(thresholds.LOSS_PARTS)}},
        f" where gradients are those of a loss over {thresholds.LOSS_PARTS:.0f}",
        _of_a_part_of_a_loss,
        _GRADIENTS,
        "gradients",
    ),
)


def has_losses(run: WholeRun) -> bool:
    """Whether there is a loss to compare."""
    return bool(_losses(run))


def _losses(run: WholeRun) -> list[ObservedTensor]:
    return [tensor for tensor in run.tensors if tensor.what.startswith(_LOSS) and not tensor.step]


def _after_step(run: WholeRun, beginning: str) -> list[ObservedTensor]:
    """What is recorded of the first step, by the beginning of its name: weights after it, gradients before."""
    step = 0 if beginning == _GRADIENTS else 1
    return [tensor for tensor in run.tensors if tensor.what.startswith(beginning) and tensor.step == step]


def _norm(tensor: ObservedTensor) -> float:
    return _norm_of(tensor.array().astype(np.float64))


def _norm_of(array: npt.NDArray[np.float64]) -> float:
    return float(np.linalg.norm(array))


def _is_finite(tensor: ObservedTensor) -> bool:
    return bool(np.isfinite(tensor.array().astype(np.float64)).all())


def _largest(tensor: ObservedTensor) -> float:
    return float(np.abs(tensor.array().astype(np.float64)).max(initial=0.0))
