"""The steady beginning of a chain of transforms is done once for each sample, the rest every time."""

from __future__ import annotations

import ast

import pytest

from unstall.optimize.remedies.cache_samples import NotSteady
from unstall.optimize.remedies.split_transforms import find_chain, is_steady_call, with_split
from unstall.optimize.sources import Sources

TEXT = '''"""Data."""
import random

calls = []


class Chain:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, value):
        for step in self.transforms:
            value = step(value)
        return value


class Scale:
    def __init__(self, by):
        self.by = by

    def __call__(self, value):
        calls.append("scale")
        return value * self.by


class Jitter:
    def __call__(self, value):
        calls.append("jitter")
        return value + random.random()


class Numbers:
    def __init__(self, transform):
        self.transform = transform

    def __getitem__(self, index):
        value = int(index)
        {call}
        return value, index
'''
CALL = "value = self.transform(value)"
GUARDED = "if self.transform is not None:\n            value = self.transform(value)"


def line_of(text):
    return next(number for number, line in enumerate(text.splitlines(), 1) if "def __getitem__" in line)


@pytest.mark.parametrize("call", [CALL, GUARDED])
def test_the_beginning_is_done_once(tmp_path, call):
    text = TEXT.replace("{call}", call)
    path = tmp_path / "data.py"
    path.write_text(text)
    chain = find_chain(text, line_of(text), "transform")
    assert (chain.cls, chain.attribute, chain.sample) == ("Numbers", "transform", "value")
    changed = with_split(Sources(), path, line_of(text), chain, ["Scale"]).bytes_of(path)
    space: dict = {"__name__": "data"}
    exec(compile(changed, str(path), "exec"), space)
    steps = [space["Scale"](2), space["Scale"](5), space["Jitter"](), space["Scale"](1)]
    dataset = space["Numbers"](space["Chain"](steps))
    seen = [dataset[3] for _ in range(3)]
    assert space["calls"] == ["scale", "scale", *["jitter", "scale"] * 3]
    assert all(30 <= value < 31 and index == 3 for value, index in seen) and len(set(seen)) == 3
    assert len(steps) == 4  # the program's own list is left as it was
    if call == GUARDED:
        assert space["Numbers"](None)[4] == (4, 4)
    assert space["Numbers"](space["Chain"]([space["Jitter"]()]))[4][0] >= 4


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("if random.random() < 0.5:\n            value = self.transform(value)", "condition"),
        ("value = self.transform(value) if index else value", "condition"),
        ("value = self.transform(self.transform(value))", "once"),
        ("value = self.transform(int(value))", "no name"),
        ("value = random.random()\n        value = self.transform(value)", "random"),
        ("self.transform = None\n        value = self.transform(value)", "sets transform"),
    ],
)
def test_what_is_not_the_same_every_time_is_left_alone(call, reason):
    text = TEXT.replace("{call}", call)
    with pytest.raises(NotSteady, match=reason):
        find_chain(text, line_of(text), "transform")


def test_which_steps_are_steady():
    text = (
        TEXT.replace("{call}", CALL).replace('calls.append("scale")', "pass").replace('calls.append("jitter")', "pass")
    )
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "def __call__" in line]
    assert [is_steady_call(ast.parse(text), line) for line in lines] == [False, True, False]
