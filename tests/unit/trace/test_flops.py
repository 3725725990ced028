"""FLOPs from recorded shapes, against those of torch's own counter."""

from __future__ import annotations

import pytest
from gpu_programs import Program

from unstall.trace.flops import _FORMULAS, _flops
from unstall.trace.metrics import TimelineMetrics
from unstall.trace.timeline import OperatorInputs


@pytest.mark.parametrize(
    ("name", "dims", "concrete", "flops"),
    [
        ("aten::mm", ([64, 32], [32, 16]), (), 2 * 64 * 32 * 16),
        ("aten::addmm", ([16], [64, 32], [32, 16]), (), 2 * 64 * 32 * 16),
        ("aten::bmm", ([8, 64, 32], [8, 32, 16]), (), 8 * 2 * 64 * 32 * 16),
        (
            "aten::_convolution",
            ([2, 3, 8, 8], [6, 3, 3, 3], []),
            ("", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"),
            2 * 2 * 8 * 8 * 6 * 3 * 3 * 3,
        ),
        (
            "aten::_convolution",
            ([2, 4, 8, 8], [8, 2, 3, 3], []),
            ("", "", "", "[2, 2]", "[1]", "[1, 1]", "False", "[0, 0]", "2"),
            2 * 2 * 4 * 4 * 8 * 2 * 3 * 3,
        ),
        ("aten::convolution_backward", ([2, 6, 8, 8], [2, 3, 8, 8], [6, 3, 3, 3]), (), 4 * 2 * 8 * 8 * 6 * 27),
        (
            "aten::_scaled_dot_product_flash_attention",
            ([2, 4, 16, 32], [2, 4, 24, 32], [2, 4, 24, 32]),
            (),
            2 * 2 * 4 * 16 * 24 * 64,
        ),
    ],
)
def test_formulas(name, dims, concrete, flops):
    assert _flops(name, OperatorInputs(dims=dims, concrete=concrete)) == flops


@pytest.mark.parametrize("name", sorted(_FORMULAS))
@pytest.mark.parametrize("dims", [(), ([],), ([1], [2]), (["x"], [3]), ([[1, 2]], [[3]])])
def test_odd_shapes_count_nothing(name, dims):
    assert _flops(name, OperatorInputs(dims=dims)) is None or _flops(name, OperatorInputs(dims=dims)) >= 0


def _program(shapes: bool) -> Program:
    program = Program()
    for _ in range(2):
        with program.step():
            inputs = {"Input_Dims": [[64, 32], [32, 16]], "Input_type": ["c10::BFloat16", "c10::BFloat16"]}
            with program.inside("aten::mm", **(inputs if shapes else {})):
                program.launch(100.0)
        program.sync()
    return program


def test_a_step_and_its_share_of_the_listed_peak():
    properties = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 1, "numSms": 108}]
    program = _program(shapes=True)
    flops = TimelineMetrics(program.timeline(deviceProperties=properties)).flops
    assert flops.per_step == 2 * 64 * 32 * 16
    assert flops.dtype == "bfloat16"
    assert flops.complete
    assert flops.mfu == pytest.approx(flops.per_step / (program.step_us() * 1e-6) / 312e12, rel=0.05)


def test_without_shapes_nothing_is_said():
    assert TimelineMetrics(_program(shapes=False).timeline()).flops is None
