"""What a device would gain that computed in bfloat16 instead of float32, by the rates that its maker lists."""

from __future__ import annotations

import re

from unstall.benchmark.peaks import listed_peak
from unstall.diagnose import claims
from unstall.records.speedup import ExpectedGain
from unstall.trace.features import TraceFeatures

_PRODUCTS = re.compile(r"(?i)mm|linear|matmul|conv|attention|einsum")
"""Operators, and nodes of backward, that compute products of matrices."""
_TF32 = re.compile(r"(?i)tf32")
_OF_TF32 = 0.5
"""Tensor cores take half as long for bfloat16 as for TF32."""
_OTHERS = 0.5
"""All else moves half the bytes."""
_REACHED = 0.5
"""Of the quicker rate, at the worst: products that are quick wait for memory."""


def by_bfloat16(device: TraceFeatures) -> ExpectedGain | None:
    """The gain; None where the device's rates are not known, or it does not compute in float32.

    Its products take as much less time as their listed rate is higher, and the host keeps up; at the worst they take
    twice that, and the host as long as under the profiler.
    """
    metrics = device.metrics
    if metrics.flops is None or metrics.flops.dtype != "float32":
        return None
    used = metrics.activity.devices[0].device
    name = next((each.name for each in metrics.timeline.devices if each.id == used), "")
    single, half = (listed_peak(name, dtype) for dtype in ("float32", "bfloat16"))
    if not single or not half:
        return None
    table, total, quick, slow = metrics.timeline.names, 0.0, 0.0, 0.0
    for each in metrics.kernels.by_operator():
        factor = least = _OTHERS
        if _PRODUCTS.search(each.name):
            kernel = table[metrics.timeline.device.name[each.longest]]
            factor = _OF_TF32 if _TF32.search(kernel) else single / half
            least = min(_OF_TF32, factor / _REACHED)
        total += each.ns
        quick += each.ns * factor
        slow += each.ns * least
    if not total:
        return None
    low = device.gain(f"compute={slow / total:.4f}x")
    # Without the profiler the host submits work in less time than the replay takes it to.
    high = 1 / (1 - device.shares["compute"] * (1 - quick / total))
    return claims.between("bfloat16", low, max(low, high), device)
