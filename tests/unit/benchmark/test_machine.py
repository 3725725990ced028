"""The machine's ceilings: plausible, kept between runs, and unharmed by bad luck."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from unstall.benchmark import machine, torch_probe
from unstall.benchmark.machine import Ceilings, cached, listed_peak, machine_key, measure, save


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache é"))
    return tmp_path / "cache é"


def ceilings(**fields) -> Ceilings:
    given = {"key": machine_key("2.5.0"), "when": "2026-01-01T00:00:00+00:00", "cpu": "x"}
    rates = {"cores": 2.0, "matmul_flops_f32": 1e9, "matmul_by": "torch"}
    return Ceilings(**given | rates | {"memory_copy_bytes_per_s": 1e9, "torch": "2.5.0"} | fields)


def test_a_measurement_without_torch(cache_folder: Path):
    measured = measure(quick=True, interpreter="no-such-python", budget_s=0.0)
    assert measured.matmul_by == "numpy"
    assert measured.torch is None
    assert measured.gpus == []
    assert measured.disk_read_bytes_per_s is None or measured.disk_read_bytes_per_s > 0
    assert msgspec.json.decode(msgspec.json.encode(measured), type=Ceilings) == measured
    assert list((cache_folder / "unstall").iterdir()) == []


def test_numpy_figures_are_plausible():
    assert machine._numpy_matmul(0.0) > 1e7
    assert machine._memory_copy(0.0) > 1e7


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert machine._disk_read(1 << 20) is None
    assert cached(None) is None
    with pytest.raises(OSError):
        save(ceilings())


def test_what_was_saved_is_found_again(cache_folder: Path):
    assert cached("2.5.0") is None
    save(ceilings())
    save(ceilings(key=machine_key("2.6.0"), torch="2.6.0"))
    save(ceilings(matmul_flops_f32=3e9))
    assert cached("2.5.0") == ceilings(matmul_flops_f32=3e9)
    assert cached("2.5.0+cu124") == ceilings(matmul_flops_f32=3e9)
    assert cached("2.6.0").torch == "2.6.0"
    assert cached("2.7.0") is None
    assert [path.name for path in (cache_folder / "unstall").iterdir()] == ["machine.json"]


def gpu(name, **rates):
    copies = [field for field in machine.GpuCeilings.__struct_fields__ if field.endswith("bytes_per_s")]
    return machine.GpuCeilings(name=name, matmul_flops=rates, **dict.fromkeys(copies, sum(rates.values())))


def test_a_later_figure_that_is_lower_replaces_none():
    save(ceilings(disk_read_bytes_per_s=5e8, gpus=[gpu("a", float32=9e12, float16=1e12)]))
    save(
        ceilings(matmul_flops_f32=3e8, memory_copy_bytes_per_s=2e9, gpus=[gpu("a", float32=8e12), gpu("b")], when="now")
    )
    kept = cached("2.5.0")
    assert (kept.matmul_flops_f32, kept.memory_copy_bytes_per_s, kept.disk_read_bytes_per_s) == (1e9, 2e9, 5e8)
    assert kept.when == "now" and [each.name for each in kept.gpus] == ["a", "b"]
    assert kept.gpus[0].matmul_flops == {"float32": 9e12, "float16": 1e12}
    assert kept.gpus[0].memory_copy_bytes_per_s == 10e12


@pytest.mark.parametrize("content", ["", "nonsense", '{"key": 3}', "[]"])
def test_a_damaged_cache_counts_as_none(content: str):
    machine.cache_file().parent.mkdir(parents=True)
    machine.cache_file().write_text(content)
    assert cached("2.5.0") is None
    save(ceilings())
    assert cached("2.5.0") == ceilings()


def test_the_probe_of_torch_prints_what_is_read_back():
    pytest.importorskip("torch")
    process = subprocess.run([sys.executable, torch_probe.__file__, "0"], capture_output=True, check=True)
    figures = msgspec.json.decode(process.stdout, type=machine._TorchFigures)
    assert figures.matmul_flops_f32 > 1e7


def test_the_probe_says_that_torch_is_missing():
    process = subprocess.run([sys.executable, "-I", "-S", torch_probe.__file__, "0"], capture_output=True, text=True)
    assert process.returncode == 1
    assert "torch cannot be imported" in process.stderr
    assert process.stdout == ""


@pytest.mark.gpu
def test_the_probe_of_a_gpu():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device here")
    figures = torch_probe.probe_gpu(torch, 0, 0.1)
    gpu = msgspec.json.decode(json.dumps(figures), type=machine.GpuCeilings)
    assert gpu.matmul_flops["float16"] > gpu.matmul_flops["float32"] > 1e11
    assert gpu.memory_copy_bytes_per_s > gpu.host_to_device_pinned_bytes_per_s > 1e8


@pytest.mark.parametrize(
    ("gpu", "dtype", "tera"),
    [
        ("NVIDIA A100-SXM4-80GB", "bf16", 312),
        ("NVIDIA A100-SXM4-80GB", "torch.float32", 19.5),
        ("NVIDIA H100 80GB HBM3", "bfloat16", 989),
        ("NVIDIA H100 PCIe", "fp16", 756),
        ("NVIDIA H100 NVL", "fp16", 835),
        ("NVIDIA H200", "bf16", 989),
        ("NVIDIA B200", "bf16", 2250),
        ("Tesla V100-SXM2-16GB", "fp16", 125),
        ("Tesla V100-PCIE-32GB", "fp16", 112),
        ("Tesla V100-SXM2-16GB", "bf16", None),
        ("Tesla T4", "float16", 65),
        ("NVIDIA L4", "bf16", 121),
        ("NVIDIA L40S", "bf16", 362),
        ("NVIDIA A10", "bf16", 125),
        ("NVIDIA A10G", "bf16", None),
        ("NVIDIA GeForce RTX 4090", "bf16", 165),
        ("NVIDIA GeForce RTX 4090 D", "bf16", None),
        ("NVIDIA GeForce RTX 3090", "fp16", 71),
        ("NVIDIA GeForce RTX 3090 Ti", "fp16", None),
        ("NVIDIA A100-SXM4-80GB", "float64", None),
        ("AMD Instinct MI300X", "bf16", None),
        ("", "bf16", None),
    ],
)
def test_listed_peaks(gpu: str, dtype: str, tera: float | None):
    assert listed_peak(gpu, dtype) == (None if tera is None else pytest.approx(tera * 1e12))
