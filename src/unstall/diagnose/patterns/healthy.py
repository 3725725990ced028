"""healthy: nothing that a remedy could give back is worth fixing."""

from __future__ import annotations

from unstall.diagnose.features import Features
from unstall.records.report import Finding
from unstall.text.units import percent


def match(features: Features) -> Finding | None:
    """The finding, or None when the numbers do not show the pattern."""
    evidence = [
        f"{percent(features.model_s / features.step_s)} of a step is the model's own forward, backward and optimizer"
    ]
    if features.efficiency is not None:
        evidence.append(f"its arithmetic runs at {percent(features.efficiency)} of this machine's peak")
    return Finding(
        pattern="healthy",
        headroom=1.0,
        headroom_known_by="estimated",
        confidence="high",
        evidence=evidence,
        advice=["nothing to fix here: a faster machine, a smaller model or lower precision are what is left"],
    )
