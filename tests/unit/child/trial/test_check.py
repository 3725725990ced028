"""What the comparison watches over beside the program's own functions must not be disturbed."""

from __future__ import annotations

import builtins
import functools
import random
from types import SimpleNamespace

import libcst as cst
import numpy as np
import pytest

from unstall.child.trial import check
from unstall.optimize.source.toplevel import with_runtime


@pytest.fixture
def told(monkeypatch, tmp_path):
    """The complaints; ``functools.lru_cache`` watches over ``doubled`` of this file."""
    monkeypatch.setattr(functools, "lru_cache", functools.lru_cache)
    monkeypatch.setattr(builtins, "__build_class__", builtins.__build_class__)
    check.targets({"memoized": [f"{__file__}:doubled"]}, str(tmp_path))
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


def test_a_single_element_may_have_any_stride():
    torch = pytest.importorskip("torch")
    (element,) = torch.arange(12).reshape(3, 4).T[0][:1].as_strided((1,), (4,)).split(1)
    assert element.stride() == (4,)
    assert check.content(element) == check.content(torch.zeros(1, dtype=torch.int64))


def test_a_result_that_is_changed_later_is_told(told):
    @functools.lru_cache(maxsize=8)
    def doubled(value):
        return [value]

    doubled(1).append(2)
    doubled(1)
    assert "changed later" in told.read_text()


@pytest.fixture
def remembering(told):
    """The class that a patch writes, watched over; and the complaints."""
    return written("remembered")["_Remembered"], told


def written(name):
    """What a module of the patches' runtime defines, as a patch has it."""
    space: dict = {}
    exec(with_runtime(cst.parse_module(""), name).code, space)
    return space


@pytest.mark.parametrize(("draws", "complains"), [(False, False), (True, True)])
def test_a_sample_that_is_kept_is_the_same_every_time(told, draws, complains):
    pytest.importorskip("torch")
    cache = written("sample_cache")["_SampleCache"]()
    sample = cache.get(lambda index: [index, random.random() if draws else 0.5], 3)
    assert sample[0] == 3 and told.exists() is complains


class Dataset:
    """Whose samples, or what it holds, may change with each that is made."""

    def __init__(self, kind):
        self.kind, self.made = kind, 0.5

    def make(self, index):
        if self.kind == "count":
            self.made += 1
        if self.kind == "scale":
            self.made = index / 2
        return [index, random.random() if self.kind == "draw" else 0.5]


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [("", ""), ("scale", ""), ("draw", "not the same every time"), ("count", "changes what the dataset holds")],
)
def test_a_sample_that_is_watched_is_the_same_every_time(told, kind, complaint):
    pytest.importorskip("torch")
    watched, dataset = written("watched_samples")["_WatchedSamples"], Dataset(kind)
    assert watched.get(dataset, dataset.make, 3)[0] == 3
    assert complaint in told.read_text() if complaint else not told.exists()


def test_lists_that_stay_as_they_are_may_be_passed(remembering):
    cls, told = remembering
    lines = ["a", "b"]
    load = cls(lambda lines, start: lines[start] * 2, (0,))
    assert [load(lines, 0), load(lines, 1), load(lines, 0)] == ["aa", "bb", "aa"] and not told.exists()
    lines.append("c")
    load(lines, 1)
    assert "a list passed to" in told.read_text()


def test_what_has_no_value_to_look_up_is_computed_and_nothing_to_complain_of(remembering):
    cls, told = remembering
    places = cls(lambda values, wanted: [place for place, value in enumerate(values) if value == wanted])
    numbers = tuple(np.arange(100))
    assert places(numbers, wanted=np.int64(7)) == places(values=numbers, wanted=7) == [7]
    labels = ["a", "b"]
    assert places(labels, wanted="a") == [0]
    labels[0] = "b"
    assert places(labels, wanted="b") == [0, 1] and not told.exists()
    places((object(),), wanted=1)
    assert "more than plain values" in told.read_text()


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
