"""Memory that is given back to the kernel and taken anew: page by page, each of them zeroed first.

glibc's allocator gives large blocks back at once, as soon as they are free (mallopt(3), ``M_MMAP_THRESHOLD``), and the
end of its heap whenever enough of that is free (``M_TRIM_THRESHOLD``). A loop that makes large tensors takes them anew
in every step. PyTorch's tuning guide recommends other allocators for that; glibc's does as well, told to keep them.
"""

from __future__ import annotations

from unstall.diagnose.thresholds import FAULTS_SAID, KEPT_MEMORY_TAKES, PAGE_FAULT_S
from unstall.records.measurements import Measurement
from unstall.text.units import percent, seconds

ADVICE = "keep the memory that is freed: mallopt, which `unstall optimize` tries, or an allocator such as jemalloc"


def share(measurement: Measurement) -> float:
    """Share of a step that the page faults of the main process take.

    What it takes for anything else is no part: at most so many seconds a page count. Of a step in which several
    threads compute it is their share of what all of them do.
    """
    faulting_s = min(measurement.main_kernel_s, measurement.page_faults * PAGE_FAULT_S)
    return faulting_s / max(measurement.step.mean, measurement.main_cpu_s)


def has_room(measurement: Measurement) -> bool:
    """Whether the machine has the memory for a program that keeps what it frees; no where that is not known."""
    return measurement.memory.has_room_for(KEPT_MEMORY_TAKES)


def evidence(measurement: Measurement) -> str | None:
    """What the kernel takes, for a person; None where it is no matter."""
    taken = share(measurement)
    if taken < FAULTS_SAID:
        return None
    return (
        f"page faults take {percent(taken)} of a step, {seconds(taken * measurement.step.mean)}: the kernel gives it "
        f"{measurement.page_faults:,.0f} pages of memory anew"
    )
