"""The NVIDIA GPUs of this machine, by the driver's management library (no CUDA, no torch)."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from unstall.records.observations import GpuClock

_HELD_BACK = {
    0x02: "clocks that were set",
    0x04: "its power limit",
    0x08: "the hardware",
    0x10: "a slower GPU of its sync group",
    0x20: "heat",
    0x40: "heat",
    0x80: "the power supply's brake",
    0x200: "the board's limit",
}
"""NVML's reasons for a clock below the highest, by their bits; idling is not among them."""
_MILLI = 1e-3


class Gpu(NamedTuple):
    """A device and its memory, bytes."""

    name: str
    memory_bytes: int


class Gpus:
    """The devices that a program started from here would see, in its order.

    Without a driver there are none, and :attr:`status` says why; nothing is raised.
    """

    def __init__(self) -> None:
        self._nvml: Any = None
        self._handles: list[Any] = []
        self.driver: str | None = None
        self.devices: list[Gpu] = []
        self.status = self._open()

    def utilization(self) -> tuple[float, ...]:
        """Share of the driver's last sampling period that a kernel ran, for each device."""
        return tuple(self._ask(self._busy_share, handle, 0.0) for handle in self._handles)

    def memory_bytes(self) -> tuple[int, ...]:
        """Memory in use on each device, by all programs."""
        return tuple(self._ask(self._used_bytes, handle, 0) for handle in self._handles)

    def clocks(self) -> tuple[GpuClock | None, ...]:
        """The clock of each device's multiprocessors, its power, and what holds it back."""
        return tuple(self._ask(self._clock, handle, None) for handle in self._handles)

    def _open(self) -> str:
        try:
            import pynvml
        except ImportError:
            return "GPUs cannot be observed: nvidia-ml-py is not installed"
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            return f"no GPU: {_reason(pynvml, error)}"
        self._nvml = pynvml
        try:
            self._handles = _visible_handles(pynvml)
            self.devices = [self._describe(handle) for handle in self._handles]
            self.driver = pynvml.nvmlSystemGetDriverVersion()
        except pynvml.NVMLError as error:
            self._handles, self.devices = [], []
            return f"no GPU: {_reason(pynvml, error)}"
        if not self.devices:
            return "no GPU: CUDA_VISIBLE_DEVICES hides them, or there is none"
        names = ", ".join(gpu.name for gpu in self.devices)
        return f"{len(self.devices)} GPU{'s' * (len(self.devices) > 1)}: {names}"

    def _describe(self, handle: Any) -> Gpu:
        memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
        return Gpu(self._nvml.nvmlDeviceGetName(handle), int(memory.total))

    def _busy_share(self, handle: Any) -> float:
        return self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100.0

    def _used_bytes(self, handle: Any) -> int:
        return int(self._nvml.nvmlDeviceGetMemoryInfo(handle).used)

    def _clock(self, handle: Any) -> GpuClock:
        nvml = self._nvml
        reasons = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        return GpuClock(
            mhz=int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            most_mhz=int(nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)),
            watts=nvml.nvmlDeviceGetPowerUsage(handle) * _MILLI,
            limit_watts=nvml.nvmlDeviceGetEnforcedPowerLimit(handle) * _MILLI,
            held_back=tuple(dict.fromkeys(name for bit, name in _HELD_BACK.items() if reasons & bit)),
        )

    def _ask(self, question: Any, handle: Any, otherwise: Any) -> Any:
        """An answer of the driver; ``otherwise`` where the device cannot tell (MIG slices, say)."""
        try:
            return question(handle)
        except self._nvml.NVMLError:
            return otherwise


def _visible_handles(nvml: Any) -> list[Any]:
    """Handles of the devices that CUDA_VISIBLE_DEVICES leaves visible, in the order it gives."""
    count = nvml.nvmlDeviceGetCount()
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    handles = []
    for name in (part.strip() for part in chosen.split(",")):
        # CUDA stops at the first entry that it does not know.
        if name.isdigit() and int(name) < count:
            handles.append(nvml.nvmlDeviceGetHandleByIndex(int(name)))
        elif name.startswith(("GPU-", "MIG-")):
            handles.append(nvml.nvmlDeviceGetHandleByUUID(name.encode()))
        else:
            break
    return handles


def _reason(nvml: Any, error: Exception) -> str:
    missing = (nvml.NVML_ERROR_LIBRARY_NOT_FOUND, nvml.NVML_ERROR_DRIVER_NOT_LOADED)
    if getattr(error, "value", None) in missing:
        return "no NVIDIA driver is installed"
    return str(error)
