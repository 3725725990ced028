"""The doctor's checks: each says what to do about what does not work."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

from unstall.benchmark.capabilities import Capability, checks


def test_every_check_explains_itself():
    found = checks()
    assert len({check.name for check in found}) == len(found)
    assert all(check.detail for check in found)
    assert all(check.advice for check in found if not check.works)
    assert all(not check.advice for check in found if check.works)


def by_name(**given) -> dict[str, Capability]:
    return {check.name: check for check in checks(**given)}


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
def test_stack_samples(failure: str | None, advice: str):
    check = by_name(sample=lambda: failure)["stack samples"]
    assert check.works is (failure is None)
    assert advice in check.advice


def test_a_bare_system(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    found = by_name(sample=lambda: None, read=lambda path: "", torch=lambda: None)
    missing = {name for name, check in found.items() if not check.works and not check.optional}
    assert missing - {"C recorder"} == {"run-delay", "disk counters"}
    assert 'pip install "unstall[memory]"' in found["memray"].advice
    assert not found["torch"].works
    assert not found["nsys"].works
