"""What the comparison watches over beside the program's own functions must not be disturbed."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import pytest

from unstall.optimize.child import check


@pytest.fixture
def told(monkeypatch, tmp_path):
    """The complaints; ``functools.lru_cache`` watches over ``doubled`` of this file."""
    code = f"{__file__}:doubled"
    monkeypatch.setattr(functools, "lru_cache", check._checking(functools.lru_cache, {code}, str(tmp_path)))
    return tmp_path / "mismatch.txt"


def test_functions_without_code_are_cached_as_ever(told):
    assert functools.lru_cache(maxsize=None)(len)("abc") == 3
    assert functools.lru_cache(len)("abcd") == 4


@pytest.mark.parametrize(("given", "complains"), [(3, False), ("x", False), ([1], True)])
def test_a_watched_function_is_asked_plain_values(told, given, complains):
    @functools.lru_cache(maxsize=8)
    def doubled(value):
        return value * 2

    assert doubled(given) == doubled(given) == given * 2
    assert told.exists() is complains


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_equal_tensors_have_the_same_content_wherever_they_lie(dtype):
    torch = pytest.importorskip("torch")
    made = torch.arange(12).reshape(3, 4).to(getattr(torch, dtype))
    held = [made.clone() for _ in range(3)]
    assert len({check.content(("a", one, {"b": one.T})) for one in held}) == 1
    other = made.clone()
    other[0, 0] = 1
    assert check.content(("a", other)) != check.content(("a", made))
    assert check.content(made.reshape(4, 3)) != check.content(made)
    assert check.content(made.double()) != check.content(made)


def test_a_result_that_is_changed_later_is_told(told):
    @functools.lru_cache(maxsize=8)
    def doubled(value):
        return [value]

    doubled(1).append(2)
    doubled(1)
    assert "changed later" in told.read_text()


@pytest.fixture
def remembering(monkeypatch, tmp_path):
    """The class that a patch writes, watched over; and the complaints."""
    monkeypatch.setattr(functools, "update_wrapper", check._checking_class(functools.update_wrapper, str(tmp_path)))
    from unstall.optimize.runtime.remembered import _Remembered

    return type("_Remembered", (_Remembered,), {}), tmp_path / "mismatch.txt"


def test_lists_that_stay_as_they_are_may_be_asked(remembering):
    cls, told = remembering
    lines = ["a", "b"]
    load = cls(lambda lines, start: lines[start] * 2, (0,))
    assert [load(lines, 0), load(lines, 1), load(lines, 0)] == ["aa", "bb", "aa"] and not told.exists()
    lines.append("c")
    load(lines, 1)
    assert "a list that" in told.read_text()


def test_a_result_that_is_changed_is_told_at_the_end_too(remembering, monkeypatch):
    cls, told = remembering
    clock = SimpleNamespace(on_end=[])
    monkeypatch.setattr(check.clocks, "current", clock)
    load = cls(lambda lines, start: [lines[start]], (0,))
    load(["a"], 0).append("more")
    assert not told.exists()
    for verify in clock.on_end:
        verify()
    assert "changed later" in told.read_text()
