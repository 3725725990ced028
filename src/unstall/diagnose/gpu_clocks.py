"""GPUs that compute more slowly than they could, because of power, heat, or a clock that somebody set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unstall.diagnose.thresholds import HELD_BACK, LOWERED_CLOCK
from unstall.records.run import GpuState
from unstall.text.units import percent


def held_back(states: Sequence[GpuState | None]) -> Iterator[str]:
    """A note for each device whose clock was lowered noticeably for a reason that the driver gives."""
    for device, state in enumerate(states):
        if state is None or state.clock > LOWERED_CLOCK:
            continue
        reasons = [reason for reason, share in state.held_back.items() if share >= HELD_BACK]
        if reasons:
            most, watts = percent(max(state.held_back.values())), f"{state.watts:.0f} of {state.limit_watts:.0f} W"
            yield (
                f"GPU {device} ran at {percent(state.clock)} of its highest clock, "
                f"held back by {' and '.join(reasons)} "
                f"{most} of the time ({watts})"
            )
