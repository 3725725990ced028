"""The doctor's checks: each says what to do about what does not work."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

from unstall.benchmark import capabilities, machine
from unstall.benchmark.capabilities import checks
from unstall.records.machine import Capability


def test_every_check_explains_itself():
    found = checks()
    assert len({check.name for check in found}) == len(found)
    assert all(check.detail for check in found)
    assert all(check.advice for check in found if not check.works)
    assert all(not check.advice for check in found if check.works)


def by_name() -> dict[str, Capability]:
    return {check.name: check for check in checks()}


@pytest.mark.parametrize(
    ("failure", "advice"),
    [
        (None, ""),
        ("py-spy is not installed: pip install py-spy", "pip install py-spy"),
        ("py-spy may not read the program: ... (kernel.yama.ptrace_scope=2)", "sysctl"),
        ("py-spy found no Python process that it can read", "CAP_SYS_PTRACE"),
        ("py-spy failed: odd", "inside the program"),
    ],
)
def test_stack_samples(monkeypatch: pytest.MonkeyPatch, failure: str | None, advice: str):
    monkeypatch.setattr(capabilities, "_try_to_sample", lambda: failure)
    check = by_name()["stack samples"]
    assert check.works is (failure is None)
    assert advice in check.advice


def test_a_bare_system(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(capabilities, "_try_to_sample", lambda: None)
    monkeypatch.setattr(capabilities, "_read", lambda path: "")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(machine, "installed_torch", lambda: None)
    found = by_name()
    missing = {name for name, check in found.items() if not check.works and not check.optional}
    assert missing - {"C recorder"} == {"run-delay", "disk counters"}
    assert 'pip install "unstall[memory]"' in found["memray"].advice
    assert not found["torch"].works
    assert not found["nsys"].works
