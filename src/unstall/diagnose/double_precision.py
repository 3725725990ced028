"""What a model in float64 would save in float32, by what it computes."""

from __future__ import annotations

from unstall.diagnose.thresholds import CONVOLUTION_COST, PRECISION_COST
from unstall.records.measurements import Measurement


def saved_by_single(measurement: Measurement) -> float:
    """Share of the model's time. A processor's library has quick convolutions for float32, and none for float64."""
    lines = measurement.operators
    total = sum(line.forward_s + line.backward_s for line in lines)
    if not total or measurement.model.on_gpu:
        return PRECISION_COST
    in_convolutions = sum(line.forward_s + line.backward_s for line in lines if "Convolution" in line.node) / total
    return PRECISION_COST + (CONVOLUTION_COST - PRECISION_COST) * in_convolutions
