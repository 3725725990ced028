"""Floating-point operations from recorded operator shapes, and the share of the device's listed peak they reach.

The formulas are those of torch.utils.flop_counter: two for each multiply and add of a matrix product or convolution.
Element-wise operators count nothing. Backward products are operators of their own in a trace, convolutions' are one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from unstall.trace.steps import StepWindows
from unstall.trace.timeline import HostKind, OperatorInputs, Timeline


@dataclass(frozen=True)
class Flops:
    """What is known of a trace's arithmetic."""

    per_step: float
    dtype: str
    """The type of most of it."""
    mfu: float | None
    """Share of the listed dense peak of the device for that type; None where the peak is not known."""
    coverage: float
    """Share of matrix products and convolutions whose shapes were recorded."""

    @property
    def complete(self) -> bool:
        """Whether nearly all of the arithmetic that can be counted was."""
        return self.coverage >= _COMPLETE


_COMPLETE = 0.95


def count(timeline: Timeline, windows: StepWindows) -> Flops | None:
    """FLOPs of a step; None when no shapes were recorded."""
    host = timeline.host
    counted = timeline.names_where(lambda name: name in _FORMULAS)[host.name] & (host.kind == HostKind.OPERATOR)
    counted &= (host.start_ns >= windows.host_start_ns[0]) & (host.start_ns < windows.end_ns[-1])
    rows = np.flatnonzero(counted)
    if not len(rows):
        return None
    keys, times = np.unique(np.stack((host.name[rows], host.inputs[rows])), axis=1, return_counts=True)
    total, known, by_dtype = 0.0, 0, dict[str, float]()
    for name, inputs, often in zip(keys[0].tolist(), keys[1].tolist(), times.tolist()):
        recorded = timeline.inputs(inputs)
        flops = _flops(timeline.names[name], recorded)
        if flops is not None:
            known += often
            total += flops * often
            dtype = next((kind for kind in recorded.types if isinstance(kind, str) and kind), "")
            by_dtype[dtype] = by_dtype.get(dtype, 0.0) + flops * often
    if not total:
        return None
    dtype = max(by_dtype, key=lambda kind: by_dtype[kind]).rpartition("::")[2].lower()
    dtype = _TORCH_NAMES.get(dtype, dtype)
    per_step = total / len(windows)
    return Flops(per_step, dtype, _mfu(timeline, per_step / windows.step_s, dtype), known / len(rows))


def _mfu(timeline: Timeline, flops_per_s: float, dtype: str) -> float | None:
    from unstall.benchmark.peaks import listed_peak

    used = np.unique(timeline.device.device)
    device = next((candidate for candidate in timeline.devices if len(used) and candidate.id == used[0]), None)
    peak = listed_peak(device.name, dtype) if device else None
    return flops_per_s / (peak * max(len(used), 1)) if peak else None


_TORCH_NAMES = {"float": "float32", "half": "float16", "bfloat16": "bfloat16"}


def _flops(name: str, inputs: OperatorInputs) -> float | None:
    try:
        return float(_FORMULAS[name](inputs))
    except (TypeError, IndexError, ValueError, KeyError):  # shapes missing, or not those of this operator
        return None


def _mm(a: list[int], b: list[int]) -> int:
    return 2 * a[0] * a[1] * b[1]


def _bmm(a: list[int], b: list[int]) -> int:
    return 2 * a[0] * a[1] * a[2] * b[2]


def _attention(query: list[int], key: list[int], value: list[int]) -> int:
    batch = prod(query[:-2])
    return 2 * batch * query[-2] * key[-2] * (query[-1] + value[-1])


def _convolution(inputs: OperatorInputs) -> float:
    """Each output element takes a product with a filter; a transposed convolution's roles are swapped."""
    x, weight = inputs.dims[0], inputs.dims[1]
    stride, padding, dilation = (_many(_integers(inputs.concrete[i]), x) for i in (3, 4, 5))
    if str(inputs.concrete[6]).lower() == "true":
        return 2.0 * prod(x) * prod(weight[1:])
    output = [
        (size + 2 * pad - step * (filt - 1) - 1) // jump + 1
        for size, filt, jump, pad, step in zip(
            x[2:], weight[2:], _many(stride, x), _many(padding, x), _many(dilation, x)
        )
    ]
    return 2.0 * x[0] * prod(output) * prod(weight)


def _convolution_backward(inputs: OperatorInputs) -> float:
    """Gradients of input and of weight, each as many operations as the forward convolution."""
    gradient, weight = inputs.dims[0], inputs.dims[2]
    return 2 * 2.0 * gradient[0] * prod(gradient[2:]) * prod(weight)


def _integers(text: Any) -> list[int]:
    return [int(word) for word in str(text).strip("[]() ").replace(",", " ").split()]


def _many(values: list[int], x: list[int]) -> list[int]:
    return values * (len(x) - 2) if len(values) == 1 else values


_FORMULAS: dict[str, Callable[[OperatorInputs], float]] = {
    "aten::mm": lambda i: _mm(i.dims[0], i.dims[1]),
    "aten::addmm": lambda i: _mm(i.dims[1], i.dims[2]),
    "aten::_scaled_mm": lambda i: _mm(i.dims[0], i.dims[1]),
    "aten::bmm": lambda i: _bmm(i.dims[0], i.dims[1]),
    "aten::baddbmm": lambda i: _bmm(i.dims[1], i.dims[2]),
    "aten::_convolution": _convolution,
    "aten::convolution_backward": _convolution_backward,
    "aten::_scaled_dot_product_flash_attention": lambda i: _attention(i.dims[0], i.dims[1], i.dims[2]),
    "aten::_scaled_dot_product_efficient_attention": lambda i: _attention(i.dims[0], i.dims[1], i.dims[2]),
    "aten::_scaled_dot_product_cudnn_attention": lambda i: _attention(i.dims[0], i.dims[1], i.dims[2]),
}
