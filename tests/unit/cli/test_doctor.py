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


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):
    def run(*options, other_cores=0.1, **more):
        examined = doctor.Examined(CHECKS, CEILINGS, other_cores)
        monkeypatch.setattr(doctor, "examine", lambda *, quick, progress: examined)
        return CliRunner(**more).invoke(verb, options)

    return run


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


@pytest.mark.parametrize(("cores", "is_told"), [(0.1, False), (1.4, True)])
def test_a_busy_machine_is_told_of(run, cores, is_told):
    result = run(other_cores=cores)
    assert result.exit_code == 0
    assert ("other programs took 1.4 cores meanwhile" in result.stderr) is is_told
