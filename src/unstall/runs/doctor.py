"""``unstall doctor``: what can be measured on this machine, and its ceilings."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from unstall.benchmark import machine
from unstall.benchmark.capabilities import checks
from unstall.benchmark.load import Load
from unstall.records.machine import Capability, MachineRate

if TYPE_CHECKING:
    from unstall.benchmark.machine import Ceilings
    from unstall.report.progress import Progress

_QUIET_CORES = 0.3


class Examined(NamedTuple):
    """What works, and how fast the machine is."""

    checks: list[Capability]
    ceilings: Ceilings
    other_cores: float
    """Cores that other programs took while the ceilings were measured."""

    @property
    def is_disturbed(self) -> bool:
        """Whether the ceilings may be low for that."""
        return self.other_cores > _QUIET_CORES


def examine(
    *,
    quick: bool,
    progress: Progress,
    try_out: Callable[[], list[Capability]] = checks,
    measure: Callable[..., Ceilings] = machine.measure,
    save: Callable[[Ceilings], None] = machine.save,
    load: Callable[[], Load] = Load,
) -> Examined:
    """Try out every means of measuring, and measure the ceilings. ``quick``: spend less time on them; they may be low.

    The ceilings are cached for the commands that compare with them, unless other programs kept the machine busy.
    """
    progress.update("trying out what can be measured")
    results = try_out()
    progress.update("measuring this machine's ceilings")
    began, others = time.monotonic(), load()
    ceilings = measure(quick=quick)
    examined = Examined(results, ceilings, others.of_others(time.monotonic() - began))
    if not examined.is_disturbed:
        with contextlib.suppress(OSError):  # without a cache they are measured again
            save(ceilings)
    return examined


def rates(ceilings: Ceilings) -> Iterator[MachineRate]:
    """Every ceiling, the processor's first."""
    yield MachineRate(f"matrix product, float32, by {ceilings.matmul_by}", ceilings.matmul_flops_f32, in_flop=True)
    yield MachineRate("memory copy", ceilings.memory_copy_bytes_per_s)
    if ceilings.disk_read_bytes_per_s is not None:
        yield MachineRate("disk read, sequential", ceilings.disk_read_bytes_per_s)
    for gpu in ceilings.gpus:
        for dtype, flops in gpu.matmul_flops.items():
            listed = machine.listed_peak(gpu.name, dtype)
            share = flops / listed if listed else None
            yield MachineRate(f"{gpu.name}: matrix product, {dtype}", flops, in_flop=True, listed_share=share)
        yield MachineRate(f"{gpu.name}: memory copy", gpu.memory_copy_bytes_per_s)
        yield MachineRate(f"{gpu.name}: copy host to device, pinned", gpu.host_to_device_pinned_bytes_per_s)
        yield MachineRate(f"{gpu.name}: copy host to device, pageable", gpu.host_to_device_pageable_bytes_per_s)
        yield MachineRate(f"{gpu.name}: copy device to host, pinned", gpu.device_to_host_pinned_bytes_per_s)
        yield MachineRate(f"{gpu.name}: copy device to host, pageable", gpu.device_to_host_pageable_bytes_per_s)
