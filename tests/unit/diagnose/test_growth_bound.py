"""A growth that the source itself ends: capacities, ring buffers, histories that are cut."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unstall.diagnose.growth_bound import bound_of

IN_CLASS = """
class Buffer:
    def __init__(self, capacity):
        self.memory, self.capacity, self.at = [], capacity, 0

    def push(self, x):
{body}

    def _trim(self):
{trim}
"""


def bound(body, trim="pass", name="memory"):
    indented = (textwrap.indent(textwrap.dedent(part).strip(), " " * 8) for part in (body, trim))
    text = IN_CLASS.format(body=next(indented), trim=next(indented))
    line = next(number for number, code in enumerate(text.splitlines(), start=1) if "# grows" in code)
    return bound_of(ast.parse(text), line, name)


@pytest.mark.parametrize(
    ("condition", "body"),
    [
        ("len(self.memory) < self.capacity", "if {}:\n    self.memory.append(x)  # grows\nelse:\n    self.at += 1"),
        ("self.capacity > len(self.memory)", "if {}:\n    self.memory.append(x)  # grows"),
        ("len(self.memory) + 1 <= self.capacity", "if {}:\n    self.memory.append(None)  # grows\nself.memory[0] = x"),
        (
            "len(self.memory) >= self.capacity",
            "if {}:\n    self.memory[0] = x\nelse:\n    self.memory.append(x)  # grows",
        ),
        ("len(self.memory) == self.capacity", "if {}:\n    self.memory.pop(0)\nself.memory.append(x)  # grows"),
        ("len(self.memory) > 10", "self.memory.append(x)  # grows\nif {}:\n    self.memory = self.memory[-10:]"),
        ("len(self.memory) > 10", "self.memory.append(x)  # grows\nwhile {}:\n    del self.memory[0]"),
        ("len(self.memory) > 10", "self.memory[x] = x  # grows\nif {}:\n    self.memory.popitem()"),
        ("len(self.memory) > 10", "self.memory.append(x)  # grows\nif {}:\n    self.memory[:] = self.memory[-5:]"),
        ("len(self.memory) > 10", "self.memory.append(x)  # grows\nif {}:\n    heapq.heappop(self.memory)"),
        ("len(self.memory) >= self.capacity", "if {}:\n    return\nself.memory.append(x)  # grows"),
        ("x is None or len(self.memory) >= 9", "if {}:\n    return\nself.memory.append(x)  # grows"),
        ("not len(self.memory) >= 9", "if {}:\n    self.memory.append(x)  # grows"),
        ("x and len(self.memory) < 9", "if {}:\n    self.memory.append(x)  # grows"),
        ("len(self.memory['a']) < 9", "if {}:\n    self.memory['a'].append(x)  # grows"),
        ("self.at < self.capacity", "if {}:\n    self.memory.append(x)  # grows\nelse:\n    self.memory[self.at] = x"),
    ],
)
def test_a_capacity_ends_it(condition, body):
    assert bound(body.format(condition)) == condition


def test_another_method_may_cut_it():
    assert bound("self.memory.append(x)  # grows\nself._trim()", "if len(self.memory) > 9:\n    self.memory.pop(0)")


@pytest.mark.parametrize(
    "body",
    [
        "self.memory.append(x)  # grows",
        "if x > 0:\n    self.memory.append(x)  # grows",
        "if len(self.others) < 9:\n    self.memory.append(x)  # grows",
        "if len(self.memory) > 9:\n    self.memory.append(x)  # grows",
        "if x or len(self.memory) < 9:\n    self.memory.append(x)  # grows",
        "if len(self.memory) > 9:\n    print(self.memory)\nself.memory.append(x)  # grows",
        "if len(self.memory) > 9:\n    self.others.pop()\nself.memory.append(x)  # grows",
        "if len(self.memory) < 9:\n    return\nself.memory.append(x)  # grows",
        "self.memory.append(x)  # grows\nif len(self.memory) > 9:\n    return",
        "if x not in self.memory:\n    self.memory[x] = [x]  # grows\nelse:\n    self.memory[x] = x",
        "if x > 0:\n    self.memory.append(x)  # grows\nelse:\n    self.memory.pop()",
        "for y in x:\n    if len(self.memory) > 9:\n        break\nself.memory.append(x)  # grows",
    ],
)
def test_what_goes_on_for_ever_has_no_end(body):
    assert bound(body) == ""


def test_a_variable_of_the_module_may_have_one():
    code = "seen = []\nfor x in data:\n    seen.append(x)\n    if len(seen) > 9:\n        seen = seen[1:]\n"
    assert bound_of(ast.parse(code), 3, "seen") == "len(seen) > 9"
    assert bound_of(ast.parse(code), 3, "data") == ""


@given(st.integers(-3, 40), st.text(max_size=9))
@settings(deadline=None)
def test_no_line_can_break_it(line, name):
    assert isinstance(bound_of(ast.parse(IN_CLASS.format(body="        pass", trim="        pass")), line, name), str)
