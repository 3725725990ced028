"""What float32 would save, by what is computed and where."""

from __future__ import annotations

import pytest
from factory import measurement

from unstall.diagnose.double_precision import saved_by_single
from unstall.diagnose.thresholds import CONVOLUTION_COST, PRECISION_COST
from unstall.records.model import ModelMeasurement, OperatorLine


def saved(*nodes, device="cpu"):
    lines = [OperatorLine(frames=(), forward_s=1.0, backward_s=2.0, node=node) for node in nodes]
    return saved_by_single(measurement({"forward": 1.0}, operators=lines, model=ModelMeasurement(device=device)))


def test_convolutions_cost_more_than_other_products():
    assert saved("AddmmBackward0") == PRECISION_COST
    assert saved("ConvolutionBackward0") == CONVOLUTION_COST
    assert saved("ConvolutionBackward0", "AddmmBackward0") == pytest.approx((PRECISION_COST + CONVOLUTION_COST) / 2)


def test_where_no_operators_were_seen_or_on_a_gpu_half_of_it():
    assert saved() == PRECISION_COST
    assert saved("ConvolutionBackward0", device="cuda:0") == PRECISION_COST
