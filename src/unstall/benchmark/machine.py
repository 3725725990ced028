"""This machine's own ceilings: the fastest arithmetic, copies and reads that it reaches.

They are what a program's figures are held against (MFU, disk and copy rates). Measuring takes
seconds, so the result is kept in the user's cache folder for as long as processor, cores, GPUs and
torch stay the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from unstall.benchmark.environment import cpu_model, usable_cores
from unstall.benchmark.gpus import Gpus
from unstall.benchmark.peaks import listed_peak as listed_peak
from unstall.benchmark.thresholds import CEILINGS_LIMIT_S
from unstall.benchmark.torch_probe import best_time

_PROBE = Path(__file__).with_name("torch_probe.py")
_BLOCK_BYTES = 1 << 20


class GpuCeilings(msgspec.Struct, kw_only=True, frozen=True):
    """The best rates of one GPU, by dtype where it matters. Copied bytes are counted once."""

    name: str
    matmul_flops: dict[str, float]
    memory_copy_bytes_per_s: float
    host_to_device_pinned_bytes_per_s: float
    host_to_device_pageable_bytes_per_s: float
    device_to_host_pinned_bytes_per_s: float
    device_to_host_pageable_bytes_per_s: float


class Ceilings(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """The best rates of a machine. Copied bytes are counted once, not as a read and a write."""

    key: str
    """Names the hardware: the same for all machines with this processor, cores, GPUs and torch; names no host."""
    when: str
    """RFC 3339, UTC."""
    cpu: str
    cores: float
    matmul_flops_f32: float
    matmul_by: str
    """The library whose matrix product was measured: torch (as programs use it) or numpy."""
    memory_copy_bytes_per_s: float
    disk_read_bytes_per_s: float | None = None
    """Sequential, past the page cache; of the disk that holds the cache folder."""
    gpus: list[GpuCeilings] = msgspec.field(default_factory=list)
    torch: str | None = None


class _TorchFigures(msgspec.Struct, frozen=True):
    torch: str
    matmul_flops_f32: float
    gpus: list[GpuCeilings]


def measure(*, quick: bool = False, interpreter: str = sys.executable, budget_s: float | None = None) -> Ceilings:
    """Measure this machine: some ten seconds, about half if ``quick``, and as many for each GPU.

    Args:
        quick: spend less time on each figure, so that they may come out a little low.
        interpreter: the Python whose torch is measured, in a process of its own. Without torch
            there, the matrix product is numpy's and there are no figures of GPUs.
        budget_s: time to spend on each figure, where another is wanted.
    """
    budget_s = (0.2 if quick else 1.0) if budget_s is None else budget_s
    by_torch = _ask_torch(interpreter, budget_s)
    version = by_torch.torch if by_torch else None
    return Ceilings(
        key=machine_key(version),
        when=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        cpu=cpu_model(),
        cores=usable_cores(),
        matmul_flops_f32=by_torch.matmul_flops_f32 if by_torch else _numpy_matmul(budget_s),
        matmul_by="torch" if by_torch else "numpy",
        memory_copy_bytes_per_s=_memory_copy(budget_s),
        disk_read_bytes_per_s=_disk_read((16 if quick else 64) * _BLOCK_BYTES),
        gpus=by_torch.gpus if by_torch else [],
        torch=version,
    )


def cached(torch_version: str | None) -> Ceilings | None:
    """What was measured and saved on such a machine with this version of torch; None if nothing was."""
    return _load().get(machine_key(torch_version))


def save(ceilings: Ceilings) -> None:
    """Keep the figures for :func:`cached`, or those of an earlier time that were better: a ceiling is what was reached.

    Raises OSError if the cache folder cannot be written.
    """
    file = cache_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    known = _load()
    earlier = known.get(ceilings.key)
    content = msgspec.json.encode(known | {ceilings.key: _best(earlier, ceilings) if earlier else ceilings})
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=file.name)
    try:
        with open(descriptor, "wb") as new:
            new.write(msgspec.json.format(content, indent=2))
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise


def cache_file() -> Path:
    """Where figures are kept: ``unstall/machine.json`` in the user's cache folder."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return Path(named if os.path.isabs(named) else os.path.expanduser("~/.cache")) / "unstall" / "machine.json"


def machine_key(torch_version: str | None) -> str:
    """A short key that changes with anything that changes the ceilings."""
    gpus = [gpu.name for gpu in Gpus().devices]
    # A wheel's own version may lack the "+cu126" that torch adds to it.
    release = torch_version and torch_version.partition("+")[0]
    facts = (platform.machine(), cpu_model(), usable_cores(), gpus, release)
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()[:16]


def installed_torch() -> str | None:
    """Version of the torch beside unstall, found without importing it."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def _ask_torch(interpreter: str, budget_s: float) -> _TorchFigures | None:
    try:
        process = subprocess.run(
            [interpreter, str(_PROBE), str(budget_s)],
            capture_output=True,
            timeout=CEILINGS_LIMIT_S,
        )
        return msgspec.json.decode(process.stdout, type=_TorchFigures)
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError):
        return None


def quick_matmul_flops() -> float:
    """Single-precision FLOP/s of this machine's cores by a fifth of a second of NumPy matmul."""
    return _numpy_matmul(0.2)


def _numpy_matmul(budget_s: float) -> float:
    import numpy

    size = 1024
    a = numpy.random.default_rng(0).random((size, size), dtype=numpy.float32)
    out = numpy.empty_like(a)
    return 2.0 * size**3 / best_time(lambda: numpy.matmul(a, a, out=out), budget_s)


def _memory_copy(budget_s: float) -> float:
    import numpy

    source = numpy.ones(128 * _BLOCK_BYTES, dtype=numpy.uint8)  # larger than any cache
    target = numpy.empty_like(source)
    return source.nbytes / best_time(lambda: numpy.copyto(target, source), budget_s)


def _disk_read(size: int) -> float | None:
    """Bytes a second of reading a fresh file past the page cache; None if none can be written."""
    folder = cache_file().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            block = os.urandom(_BLOCK_BYTES)
            for _ in range(size // _BLOCK_BYTES):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.seek(0)
            start = time.perf_counter()
            while file.read(_BLOCK_BYTES):
                pass
            return size / (time.perf_counter() - start)
    except OSError:
        return None


def _best(earlier: Ceilings, later: Ceilings) -> Ceilings:
    """The later figures, each replaced by an earlier one that is higher."""
    gpus = {gpu.name: gpu for gpu in earlier.gpus}
    rates = {"matmul_flops_f32", "memory_copy_bytes_per_s", "disk_read_bytes_per_s"}
    higher = {name: max(getattr(earlier, name) or 0.0, getattr(later, name) or 0.0) or None for name in rates}
    return msgspec.structs.replace(
        later, **higher, gpus=[_best_of_gpu(gpus[gpu.name], gpu) if gpu.name in gpus else gpu for gpu in later.gpus]
    )


def _best_of_gpu(earlier: GpuCeilings, later: GpuCeilings) -> GpuCeilings:
    dtypes = earlier.matmul_flops.keys() | later.matmul_flops.keys()
    flops = {name: max(each.matmul_flops.get(name, 0.0) for each in (earlier, later)) for name in dtypes}
    copies = [name for name in GpuCeilings.__struct_fields__ if name.endswith("bytes_per_s")]
    higher = {name: max(getattr(earlier, name), getattr(later, name)) for name in copies}
    return msgspec.structs.replace(later, matmul_flops=flops, **higher)


def _load() -> dict[str, Ceilings]:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(cache_file().read_bytes(), type=dict[str, Ceilings])
    return {}
