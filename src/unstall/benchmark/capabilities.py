"""What can be measured here: each means is tried out, not guessed at."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from unstall.benchmark import machine
from unstall.benchmark.gpus import Gpus
from unstall.benchmark.sampler import NOTHING_READABLE, Sampler
from unstall.benchmark.thresholds import ATTACH_LIMIT_S
from unstall.records.machine import Capability

# Spins under the same leave to be traced that the bootstrap gives; ends by itself if left alone.
_TARGET = """
from unstall.child.main import allow_tracing
import sys, time
allow_tracing()
print(flush=True)
end = time.monotonic() + 20
while time.monotonic() < end: pass
"""


def try_to_sample() -> str | None:
    """Why a program of this interpreter cannot be sampled; None if it was."""
    command = [sys.executable, "-c", _TARGET]
    with (
        tempfile.TemporaryDirectory(prefix="unstall-") as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as target,
    ):
        assert target.stdout is not None
        target.stdout.readline()
        sampler = Sampler(target.pid, Path(folder), window_s=0.3, pause_s=0.1)
        end = time.monotonic() + ATTACH_LIMIT_S
        while not sampler.samples and sampler.failure is None and time.monotonic() < end:
            sampler.poll(time.monotonic())
            time.sleep(0.02)
        sampler.close()
        target.kill()
    if sampler.samples:
        return None
    return sampler.failure or "py-spy saw nothing"


def read_text(path: str) -> str:
    """The content of a file; empty where it cannot be read."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def checks(
    *,
    sample: Callable[[], str | None] = try_to_sample,
    read: Callable[[str], str] = read_text,
    torch: Callable[[], str | None] = machine.installed_torch,
) -> list[Capability]:
    """Try every means out; takes a second or two.

    Args:
        sample: why a program cannot be sampled, if it cannot.
        read: what a file of ``/proc`` holds, nothing where it cannot be read.
        torch: the version beside unstall, if there is one.
    """
    return [
        _stack_samples(sample()),
        _recorder(),
        _run_delay(read("/proc/self/schedstat")),
        _disk_counters(read("/proc/self/io")),
        _gpus(),
        _torch(torch()),
        _package("memray", "--memory", "memory"),
        _package("nvtx", "--nvtx", "nvtx"),
        _package("tensorboard", "--tensorboard", "tensorboard"),
        _nsight(),
    ]


def _stack_samples(failure: str | None) -> Capability:
    if failure is None:
        return Capability("stack samples", True, "py-spy reads a running program")
    advice = "stacks are sampled inside the program instead, with less certainty"
    if "ptrace_scope" in failure or failure == NOTHING_READABLE:
        advice = "allow tracing: sysctl kernel.yama.ptrace_scope=0, or add CAP_SYS_PTRACE"
    elif "not installed" in failure:
        advice = "pip install py-spy"
    return Capability("stack samples", False, failure, advice)


def _recorder() -> Capability:
    from unstall.child.recording import NATIVE

    if NATIVE:
        return Capability("C recorder", True, "spans cost a fraction of a microsecond")
    return Capability(
        "C recorder",
        False,
        "the pure Python one is used: slower, and blind to waits for a core",
        "install unstall from a wheel, or with a C compiler; not for free-threaded Python",
    )


def _run_delay(statistics: str) -> Capability:
    name = "run-delay"
    fields = statistics.split()
    if len(fields) >= 2 and fields[0] != "0":
        return Capability(name, True, "the scheduler tells how long a thread waits for a core")
    return Capability(
        name,
        False,
        "no scheduler statistics in /proc",
        "needs Linux built with CONFIG_SCHED_INFO; contention for cores is detected less reliably",
    )


def _disk_counters(counters: str) -> Capability:
    name = "disk counters"
    if "read_bytes" in counters:
        return Capability(name, True, "bytes read and written, process by process")
    advice = "needs Linux built with CONFIG_TASK_IO_ACCOUNTING"
    return Capability(name, False, "/proc/<pid>/io cannot be read", advice)


def _gpus() -> Capability:
    gpus = Gpus()
    advice = "" if gpus.devices else "nothing to do, unless there should be one: see nvidia-smi"
    detail = gpus.status.removeprefix("no GPU: ")
    return Capability("GPU", bool(gpus.devices), detail, advice, optional=True)


def _torch(version: str | None) -> Capability:
    if version:
        return Capability("torch", True, f"{version}, in unstall's environment")
    return Capability(
        "torch",
        False,
        "not in unstall's environment",
        "fine if your programs run in another environment: unstall never needs it itself",
        optional=True,
    )


def _package(module: str, option: str, extra: str) -> Capability:
    works = importlib.util.find_spec(module) is not None
    detail = f"unstall run {option}" if works else "not installed"
    advice = "" if works else f'for unstall run {option}: pip install "unstall[{extra}]"'
    return Capability(module, works, detail, advice, optional=True)


def _nsight() -> Capability:
    path = shutil.which("nsys")
    advice = "" if path else "only to record traces with Nsight Systems: install it from NVIDIA"
    return Capability("nsys", path is not None, path or "not on the PATH", advice, optional=True)
