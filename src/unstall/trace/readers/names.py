"""What an event is, told by its name: the conventions of PyTorch, NCCL, CUPTI and roctracer."""

from __future__ import annotations

import re

from unstall.trace.timeline import CopyKind, HostKind, HostMemory, WaitKind

_COLLECTIVE_KERNEL = re.compile(
    r"(?i)^(?:void )?(?:nccl|rccl|mscclpp|oneccl|hccl|msccl)|ncclDevKernel|ncclKernel|cross_device_reduce|"
    r"multimem_(?:all_reduce|all_gather)|(?:one|two)_shot_all_?reduce|nvshmem|deep_ep::|::ep::(?:inter|intra)node::"
)
"""NCCL and RCCL kernels, and those that vLLM, PyTorch's symmetric memory, NVSHMEM and DeepEP use in their place."""
_ANNOTATION = re.compile(r"^(?:Optimizer\.(?:step|zero_grad)#|## |nccl:|gloo:|DistributedDataParallel\.|Forward Pass)")
_COPY = re.compile(r"(?i)\b(HtoD|DtoH|DtoD|HtoH|PtoP|Host-to-Device|Device-to-Host|Device-to-Device|Peer-to-Peer)\b")
_COPIES = {
    "htod": CopyKind.H2D,
    "host-to-device": CopyKind.H2D,
    "dtoh": CopyKind.D2H,
    "device-to-host": CopyKind.D2H,
    "dtod": CopyKind.D2D,
    "device-to-device": CopyKind.D2D,
    "ptop": CopyKind.P2P,
    "peer-to-peer": CopyKind.P2P,
    "htoh": CopyKind.H2H,
}
_LOADER = re.compile(r"^enumerate\(DataLoader\)#.*__next__|^unstall data\.next$")
"""PyTorch's own range, and that of `unstall run --nvtx`."""


def is_collective(name: str) -> bool:
    """Whether a device kernel of this name moves data between ranks."""
    return bool(_COLLECTIVE_KERNEL.search(name))


def is_graph_launch(name: str) -> bool:
    """Whether this API call launches a whole CUDA or HIP graph."""
    return "GraphLaunch" in name


def host_kind(name: str, kind: HostKind) -> HostKind:
    """What an operator or annotation of this name really is (old traces write all of them as operators)."""
    if name.startswith("ProfilerStep#"):
        return HostKind.STEP
    if _LOADER.search(name):
        return HostKind.LOADER
    if kind == HostKind.OPERATOR and _ANNOTATION.search(name):
        return HostKind.ANNOTATION
    return kind


def copy_kind(name: str) -> CopyKind:
    """From a name such as "Memcpy HtoD (Pageable -> Device)"."""
    found = _COPY.search(name)
    return _COPIES[found[1].lower()] if found else CopyKind.NONE


def host_memory(name: str) -> HostMemory:
    """The host side of a copy, from its name; device memory on both sides, or "Host" (ROCm), tells nothing."""
    if "Pageable" in name:
        return HostMemory.PAGEABLE
    return HostMemory.PINNED if "Pinned" in name else HostMemory.UNKNOWN


def wait_kind(name: str) -> WaitKind:
    """From the name of a cuda_sync event: "Stream Wait Event", "Event Sync", "Stream Sync", "Context Sync"."""
    lowered = name.lower()
    if "wait" in lowered:
        return WaitKind.STREAM_WAIT
    if "event" in lowered:
        return WaitKind.EVENT_SYNC
    return WaitKind.STREAM_SYNC if "stream" in lowered else WaitKind.DEVICE_SYNC
