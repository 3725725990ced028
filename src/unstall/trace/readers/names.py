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
_COPY = re.compile(
    r"(?i)(?<![a-z])(?:(?:memory_)?copy_?)?(h|d|p|host|device|peer)[-_]?to[-_]?(h|d|p|host|device|peer)(?![a-z])"
)
_COPY_ALONE = re.compile(r"(?i)^(?:memory_)?copy_?(?:host|device)_?to_?(?:host|device)$")
"""What roctracer and rocprofiler call a copy, which some versions of Kineto write as if it were a kernel."""
_COPIES = {
    "hd": CopyKind.H2D,
    "dh": CopyKind.D2H,
    "dd": CopyKind.D2D,
    "pp": CopyKind.P2P,
    "hh": CopyKind.H2H,
}
"""Kinds of copies, by the first letters of where from and where to."""
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
    """From a name such as "Memcpy HtoD (Pageable -> Device)", "Host-to-Device", "CopyHostToDevice"."""
    match = _COPY.search(name)
    return _COPIES.get((match[1][0] + match[2][0]).lower(), CopyKind.NONE) if match else CopyKind.NONE


def is_copy(name: str) -> bool:
    """Whether device work of this name, of whatever category, is a copy."""
    return bool(_COPY_ALONE.search(name))


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
