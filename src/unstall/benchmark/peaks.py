"""Peak arithmetic rates that makers list for their GPUs: dense, at boost clock."""

from __future__ import annotations

import re

_TERA = 1e12

# Name as the driver gives it → dtype → TFLOP/s, from the makers' data sheets. Sheets that list only
# rates with 2:4 sparsity are halved. Half precision accumulates in float32. A dtype is absent where
# the hardware has no unit for it, a device where its sheet leaves doubt.
_LISTED: tuple[tuple[str, dict[str, float]], ...] = (
    (r"\bB200\b", {"bfloat16": 2250, "float16": 2250}),
    (r"\bH(?:100|200) NVL\b", {"bfloat16": 835, "float16": 835, "float32": 60}),
    (r"\bH100 PCIe\b", {"bfloat16": 756, "float16": 756, "float32": 51}),
    (r"\b(?:H100|H800|H200|GH200)\b", {"bfloat16": 989, "float16": 989, "float32": 67}),
    (r"\bA(?:100|800)\b", {"bfloat16": 312, "float16": 312, "float32": 19.5}),
    (r"\bA40\b", {"bfloat16": 149.7, "float16": 149.7, "float32": 37.4}),
    (r"\bA30\b", {"bfloat16": 165, "float16": 165, "float32": 10.3}),
    (r"\bA10\b", {"bfloat16": 125, "float16": 125, "float32": 31.2}),
    (r"\bL40S\b", {"bfloat16": 362, "float16": 362, "float32": 91.6}),
    (r"\bL40\b", {"bfloat16": 181, "float16": 181, "float32": 90.5}),
    (r"\bL4\b", {"bfloat16": 121, "float16": 121, "float32": 30.3}),
    (r"\bV100.*PCIE", {"float16": 112, "float32": 14}),
    (r"\bV100", {"float16": 125, "float32": 15.7}),
    (r"\bT4\b", {"float16": 65, "float32": 8.1}),
    (r"\bRTX 4090(?! D)", {"bfloat16": 165, "float16": 165, "float32": 82.6}),
    (r"\bRTX 3090(?! Ti)", {"bfloat16": 71, "float16": 71, "float32": 35.6}),
)
_SHORT_NAMES = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32"}


def listed_peak(gpu_name: str, dtype: str) -> float | None:
    """Dense peak of a GPU in FLOP/s; None for a device or dtype that is not known for sure.

    Args:
        gpu_name: as the driver or ``torch.cuda.get_device_name`` gives it.
        dtype: ``bfloat16``, ``float16`` or ``float32`` (not TF32), with or without ``torch.``, or
            the short forms ``bf16``, ``fp16`` and ``fp32``.
    """
    dtype = dtype.removeprefix("torch.")
    dtype = _SHORT_NAMES.get(dtype, dtype)
    for pattern, peaks in _LISTED:
        if re.search(pattern, gpu_name):
            return peaks[dtype] * _TERA if dtype in peaks else None
    return None
