"""The exchange of gradients inside backward, from what DistributedDataParallel logs of single steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from unstall.records.measurements import GradientExchange


def gradient_exchange(facts: Sequence[Mapping[str, Any]]) -> GradientExchange | None:
    """What the models of a rank exchange in a step, together; None where none was timed.

    Of each figure the median over the steps that torch timed.

    Args:
        facts: lines of :mod:`unstall.child.seams.ddp`, one for a timed step of a model.
    """
    by_model: dict[Any, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for fact in facts:
        by_model[fact["model"]][int(fact["iteration"])] = fact
    models = [[*steps.values()] for steps in by_model.values()]
    if not models:
        return None
    last = [steps[-1] for steps in models]
    return GradientExchange(
        took_s=_together(models, "exchange_ns"),
        hidden_s=_together(models, "hidden_ns"),
        backward_s=_together(models, "backward_ns"),
        buckets=tuple(int(size) for fact in last for size in fact["buckets"]),
        looks_for_unused=any(fact["looks_for_unused"] and not fact["unused_bytes"] for fact in last),
        copies_buckets=any(fact["copies_buckets"] for fact in last),
    )


def _together(models: Sequence[Sequence[Mapping[str, Any]]], name: str) -> float:
    """Seconds a step: what the models take one after the other."""
    return sum(median(float(fact[name]) for fact in steps) for steps in models) / 1e9
