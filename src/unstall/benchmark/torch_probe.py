"""Measures what torch reaches on this machine, and prints it as one line of JSON.

Run as a script by the interpreter whose torch is to be measured: it needs torch and nothing else,
so that interpreter need not have unstall. The argument is the seconds to spend on each figure.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

_COPY_BYTES = 256 * 2**20


def best_time(call: Callable[[], object], budget_s: float, wait: Callable[[], object] = lambda: None) -> float:
    """The shortest of several timed calls, after one that warms up; seconds. ``wait`` waits until a call is done."""
    call()
    wait()
    best = float("inf")
    end = time.perf_counter() + budget_s
    while True:
        start = time.perf_counter()
        call()
        wait()
        now = time.perf_counter()
        best = min(best, now - start)
        if now >= end:
            return best


def matmul_flops(torch: Any, device: str, dtype: Any, size: int, budget_s: float) -> float:
    """FLOP/s of a square matrix product, the best of those tried."""
    a = torch.randn(size, size, device=device).to(dtype)
    b = torch.randn(size, size, device=device).to(dtype)
    out = torch.empty_like(a)
    seconds = best_time(lambda: torch.mm(a, b, out=out), budget_s, _waiter(torch, device))
    return 2.0 * size**3 / seconds


def probe_gpu(torch: Any, index: int, budget_s: float) -> dict[str, Any]:
    """Matrix products and copies of one device; bytes are counted once for each byte copied."""
    device = f"cuda:{index}"
    wait = _waiter(torch, device)
    on_device = torch.empty(_COPY_BYTES, dtype=torch.uint8, device=device)
    target = torch.empty_like(on_device)
    pageable = torch.zeros(_COPY_BYTES, dtype=torch.uint8)
    pinned = pageable.pin_memory()

    def copy_rate(to: Any, source: Any) -> float:
        seconds = best_time(lambda: to.copy_(source, non_blocking=True), budget_s, wait)
        return _COPY_BYTES / seconds

    dtypes = {"float32": torch.float32, "float16": torch.float16}
    if torch.cuda.get_device_capability(index) >= (8, 0):
        dtypes["bfloat16"] = torch.bfloat16
    return {
        "name": torch.cuda.get_device_name(index),
        "matmul_flops": {name: matmul_flops(torch, device, dtype, 8192, budget_s) for name, dtype in dtypes.items()},
        "memory_copy_bytes_per_s": copy_rate(target, on_device),
        "host_to_device_pinned_bytes_per_s": copy_rate(on_device, pinned),
        "host_to_device_pageable_bytes_per_s": copy_rate(on_device, pageable),
        "device_to_host_pinned_bytes_per_s": copy_rate(pinned, on_device),
        "device_to_host_pageable_bytes_per_s": copy_rate(pageable, on_device),
    }


def probe(budget_s: float) -> dict[str, Any]:
    """All figures that torch can measure here. Raises ImportError without torch."""
    import torch

    gpus = []
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        try:
            gpus.append(probe_gpu(torch, index, budget_s))
        except RuntimeError as error:  # its memory is in use, say
            print(f"GPU {index} is left out: {error}", file=sys.stderr)
    return {
        "torch": torch.__version__,
        "matmul_flops_f32": matmul_flops(torch, "cpu", torch.float32, 1024, budget_s),
        "gpus": gpus,
    }


def _waiter(torch: Any, device: str) -> Callable[[], object]:
    if device == "cpu":
        return lambda: None
    return lambda: torch.cuda.synchronize(device)


if __name__ == "__main__":
    try:
        print(json.dumps(probe(float(sys.argv[1]))))
    except ImportError as missing:
        sys.exit(f"torch cannot be imported: {missing}")
