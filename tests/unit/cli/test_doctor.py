"""``unstall doctor`` prints what it found, as tables or as JSON."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from unstall.benchmark import machine
from unstall.cli.doctor import verb
from unstall.records.machine import Capability
from unstall.runs import doctor

GPU = machine.GpuCeilings(
    name="NVIDIA A100-SXM4-80GB",
    matmul_flops={"float32": 19e12, "bfloat16": 250e12},
    memory_copy_bytes_per_s=700e9,
    host_to_device_pinned_bytes_per_s=25e9,
    host_to_device_pageable_bytes_per_s=8e9,
    device_to_host_pinned_bytes_per_s=24e9,
    device_to_host_pageable_bytes_per_s=7e9,
)
CEILINGS = machine.Ceilings(
    key="k",
    when="2026-01-01T00:00:00+00:00",
    cpu="A [bold]processor",
    cores=1.5,
    matmul_flops_f32=55.9e9,
    matmul_by="torch",
    memory_copy_bytes_per_s=17.4e9,
    gpus=[GPU],
)
CHECKS = [
    Capability("stack samples", True, "py-spy reads a running program"),
    Capability("run-delay", False, "no statistics [/dim]", "build a kernel " * 20),
    Capability("nsys", False, "not on the PATH", "install it", optional=True),
]


class SimpleLoad:
    """A machine of which other programs take so many cores."""

    def __init__(self, cores):
        self.cores = cores

    def of_others(self, seconds):
        return self.cores


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "checks", lambda: CHECKS)
    monkeypatch.setattr(machine, "measure", lambda quick: CEILINGS)
    monkeypatch.setattr(machine, "save", lambda ceilings: None)
    monkeypatch.setattr(doctor, "Load", lambda: SimpleLoad(0.1))
    return lambda *options, **more: CliRunner(**more).invoke(verb, options)


def test_tables(run):
    result = run(env={"COLUMNS": "200"})
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert "\x1b" not in result.stdout
    answers = {line[:13].strip(): line.split()[2] for line in lines if line.startswith("stack")}
    assert answers == {"stack samples": "yes"}
    assert "no statistics [/dim]; build a kernel" in result.stdout
    assert "A [bold]processor, 1.5 cores" in result.stdout
    assert "55.9 GFLOP/s" in result.stdout
    assert "bfloat16, 80 % of the listed peak" in result.stdout
    assert "disk" not in result.stdout


def test_json(run):
    result = run("--json", "-")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert [check["works"] for check in answer["checks"]] == [True, False, False]
    assert answer["ceilings"]["gpus"][0]["matmul_flops"]["bfloat16"] == 250e12
    assert "disk_read_bytes_per_s" not in answer["ceilings"]


@pytest.mark.parametrize(("cores", "is_kept"), [(0.1, True), (1.4, False)])
def test_figures_of_a_busy_machine_are_not_kept(run, monkeypatch: pytest.MonkeyPatch, cores, is_kept):
    kept = []
    monkeypatch.setattr(machine, "save", kept.append)
    monkeypatch.setattr(doctor, "Load", lambda: SimpleLoad(cores))
    result = run()
    assert result.exit_code == 0 and kept == [CEILINGS] * is_kept
    assert ("other programs took 1.4 cores meanwhile" in result.stderr) is not is_kept


def test_a_cache_that_cannot_be_written_does_no_harm(run, monkeypatch: pytest.MonkeyPatch):
    def full(ceilings: machine.Ceilings) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(machine, "save", full)
    assert run().exit_code == 0
