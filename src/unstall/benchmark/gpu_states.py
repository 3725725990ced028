"""Clock and power of the GPUs while they were at work, and what held them back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import mean

from unstall.benchmark.thresholds import GPU_AT_WORK
from unstall.records.observations import GpuClock, MachinePoint
from unstall.records.run import GpuState


def gpu_states(looks: Sequence[MachinePoint], begin: float, end: float) -> list[GpuState | None]:
    """Of each device, over the looks between two times at which it was at work; None without such a look."""
    by_device: dict[int, list[GpuClock]] = {}
    for look in looks:
        for device, clock in enumerate(look.gpu_clocks):
            clocks = by_device.setdefault(device, [])
            if begin <= look.t <= end and clock is not None and look.gpu_utilization[device] >= GPU_AT_WORK:
                clocks.append(clock)
    return [_state(clocks) if clocks else None for _, clocks in sorted(by_device.items())]


def _state(clocks: Sequence[GpuClock]) -> GpuState:
    reasons = Counter(reason for clock in clocks for reason in clock.held_back)
    return GpuState(
        clock=mean(clock.mhz / clock.most_mhz if clock.most_mhz else 1.0 for clock in clocks),
        watts=mean(clock.watts for clock in clocks),
        limit_watts=mean(clock.limit_watts for clock in clocks),
        held_back={reason: count / len(clocks) for reason, count in reasons.most_common()},
    )
