"""What a machine says of itself, control groups included."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from unstall.benchmark.environment import (
    environment,
    git_revision,
    usable_cores,
    usable_memory_bytes,
)
from unstall.benchmark.gpus import Gpus
from unstall.records.observations import GpuClock


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(autouse=True)
def many_cores(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)


def test_affinity_alone(tmp_path: Path):
    assert usable_cores(tmp_path) == 64.0


@pytest.mark.parametrize(("text", "cores"), [("150000 100000\n", 1.5), ("max 100000\n", 64.0)])
def test_a_quota_of_version_2(tmp_path: Path, text: str, cores: float):
    write(tmp_path / "proc/self/cgroup", "0::/job/task\n")
    write(tmp_path / "sys/fs/cgroup/job/task/cpu.max", "max 100000\n")
    write(tmp_path / "sys/fs/cgroup/job/cpu.max", text)
    assert usable_cores(tmp_path) == cores


@pytest.mark.parametrize(("quota", "cores"), [("400000\n", 4.0), ("-1\n", 64.0)])
def test_a_quota_of_version_1_in_a_container(tmp_path: Path, quota: str, cores: float):
    write(tmp_path / "proc/self/cgroup", "4:memory:/docker/ab\n2:cpu,cpuacct:/docker/ab\n0::/\n")
    write(tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota)
    write(tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    assert usable_cores(tmp_path) == cores


def test_a_memory_limit(tmp_path: Path):
    unlimited = usable_memory_bytes(tmp_path)
    assert unlimited > 0
    write(tmp_path / "proc/self/cgroup", "0::/\n")
    write(tmp_path / "sys/fs/cgroup/memory.max", "1048576\n")
    assert usable_memory_bytes(tmp_path) == 1048576
    write(tmp_path / "sys/fs/cgroup/memory.max", "max\n")
    assert usable_memory_bytes(tmp_path) == unlimited


def test_the_environment_is_plain_data():
    facts = environment()
    assert msgspec.json.decode(msgspec.json.encode(facts)) == facts
    assert facts["cpu_count"] > 0
    assert facts["python"].startswith("3.")
    assert None not in facts.values()


def test_the_revision_of_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_revision(tmp_path) is None
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    try:
        subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=tmp_path, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no usable git here")
    assert len(git_revision(tmp_path) or "") == 40
    monkeypatch.setenv("PATH", "")
    assert git_revision(tmp_path) is None


class FakeNvml:
    """As much of pynvml as is asked for, with two devices, one of which tells no utilisation."""

    NVML_ERROR_LIBRARY_NOT_FOUND = 12
    NVML_ERROR_DRIVER_NOT_LOADED = 9

    class NVMLError(Exception):
        pass

    def __init__(self, init_error: int | None = None):
        self.init_error = init_error

    def nvmlInit(self):
        if self.init_error is not None:
            error = self.NVMLError("it is broken")
            error.value = self.init_error
            raise error

    def nvmlDeviceGetCount(self):
        return 2

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetHandleByUUID(self, name):
        return {b"GPU-one": 1}[name]

    def nvmlDeviceGetName(self, handle):
        return ["NVIDIA A", "NVIDIA B"][handle]

    def nvmlSystemGetDriverVersion(self):
        return "550.1"

    def nvmlDeviceGetMemoryInfo(self, handle):
        return type("Memory", (), {"total": 80 + handle, "used": 10 + handle})

    def nvmlDeviceGetUtilizationRates(self, handle):
        if handle == 1:
            raise self.NVMLError("not supported")
        return type("Rates", (), {"gpu": 75})

    NVML_CLOCK_SM = 1

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        if handle == 1:
            raise self.NVMLError("not supported")
        return 0x04 | 0x20 | 0x40 | 0x01

    def nvmlDeviceGetClockInfo(self, handle, kind):
        return 1000

    def nvmlDeviceGetMaxClockInfo(self, handle, kind):
        return 2000

    def nvmlDeviceGetPowerUsage(self, handle):
        return 295_000

    def nvmlDeviceGetEnforcedPowerLimit(self, handle):
        return 300_000


def gpus_with(monkeypatch: pytest.MonkeyPatch, nvml: FakeNvml, visible: str | None) -> Gpus:
    monkeypatch.setitem(__import__("sys").modules, "pynvml", nvml)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    return Gpus()


def test_gpus_are_described(monkeypatch: pytest.MonkeyPatch):
    gpus = gpus_with(monkeypatch, FakeNvml(), None)
    assert gpus.devices == [("NVIDIA A", 80), ("NVIDIA B", 81)]
    assert gpus.status == "2 GPUs: NVIDIA A, NVIDIA B"
    assert gpus.utilization() == (0.75, 0.0)
    assert gpus.memory_bytes() == (10, 11)
    assert gpus.clocks() == (GpuClock(1000, 2000, 295.0, 300.0, ("its power limit", "heat")), None)
    assert environment(gpus)["driver"] == "550.1"


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        ("1,0", ["NVIDIA B", "NVIDIA A"]),
        ("GPU-one", ["NVIDIA B"]),
        ("0,7,1", ["NVIDIA A"]),
        ("-1", []),
        ("", []),
    ],
)
def test_only_visible_gpus_count(monkeypatch: pytest.MonkeyPatch, visible: str, names: list[str]):
    gpus = gpus_with(monkeypatch, FakeNvml(), visible)
    assert [gpu.name for gpu in gpus.devices] == names
    assert bool(names) == ("no GPU" not in gpus.status)


@pytest.mark.parametrize(("code", "reason"), [(12, "no NVIDIA driver"), (999, "it is broken")])
def test_without_a_driver_it_says_so(monkeypatch: pytest.MonkeyPatch, code: int, reason: str):
    gpus = gpus_with(monkeypatch, FakeNvml(init_error=code), None)
    assert reason in gpus.status
    assert gpus.utilization() == ()
