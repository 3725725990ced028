"""What is kept under a key that does not tell apart what it depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.prove.lines.kept import first
from unstall.prove.lines.sources import Change
from unstall.prove.trees import Sides

TRAIN = Path("/program/train.py")
BEFORE = """\
OLD = {}

class Rows(Dataset):
    def __init__(self, x):
        self.x = x

    def read(self, index):
        return self.x[index]
"""
READ = "        return self.x[index]\n"


def shared(*changes):
    after = BEFORE
    for old, new in changes:
        assert old in after
        after = after.replace(old, new)
    if "dict(\n" not in after:
        compile(after, "train.py", "exec")  # or nothing is found for that
    sides = Sides({TRAIN: BEFORE.encode()}, {TRAIN: after.encode()})
    return first(Change.of(sides))


def kept(holder, key="index", value="self.x[index]"):
    return (
        READ,
        f"        if {key} not in {holder}:\n            {holder}[{key}] = {value}\n        return {holder}[{key}]\n",
    )


IN_CLASS = ("class Rows(Dataset):\n", "class Rows(Dataset):\n    kept = {}\n")
IN_MODULE = ("OLD = {}\n", "OLD = {}\nKEPT = dict()\n")


@pytest.mark.parametrize("holder", ["self.kept", "Rows.kept", "type(self).kept", "self.__class__.kept"])
def test_a_dict_of_the_class_that_is_kept_by_number_is_named(holder):
    assert shared(IN_CLASS, kept(holder)) == (
        f"what {holder} (train.py:10) keeps is found by every Rows: a second one would be given that of the first"
    )


@pytest.mark.parametrize(
    "lines",
    [
        "        return KEPT.setdefault(index, self.x[index])\n",
        "        row = self.x\n        KEPT[index % 8] = value = row[index]\n        return value\n",
        "        for number, row in enumerate(self.x):\n            KEPT[index] = row\n        return KEPT[index]\n",
    ],
)
def test_so_is_one_of_the_module(lines):
    assert "what KEPT (train.py:" in shared(IN_MODULE, (READ, lines))


@pytest.mark.parametrize(
    "changes",
    [
        [IN_CLASS, kept("self.kept", key="(self, index)")],
        [IN_CLASS, kept("self.kept", key="(id(self), index)", value="(self, self.x[index])")],
        [
            IN_CLASS,
            ("    kept = {}\n", "    kept = {}\n    SCALE = 2\n"),
            kept("self.kept", value="index * self.SCALE"),
        ],
        [IN_CLASS, kept("self.kept", value="table_of(index)")],
        [IN_CLASS, kept("self.kept"), ("        self.x = x\n", "        self.x = x\n        self.kept = {}\n")],
        [("        self.x = x\n", "        self.x, self.kept = x, {}\n"), kept("self.kept")],
        [IN_MODULE, (READ, "        path = self.x[index]\n        return KEPT.setdefault(path, load(path, self.x))\n")],
        [kept("OLD")],
        [IN_MODULE, (READ, "        KEPT = {}\n        return self.x[index]\n")],
        [("OLD = {}\n", "OLD = {}\nKEPT = dict(\n")],
    ],
)
def test_what_tells_them_apart_or_does_not_depend_on_them_is_none(changes):
    assert shared(*changes) is None


MORE = ("        self.x = x\n", "        self.x, self.words, self.training = x, {}, len(x) > 9\n")
READ_BY_METHOD = (
    "    def read(self, index):\n",
    "    def numbers(self, line):\n        return self.split(line, 9)\n\n"
    "    def split(self, line, most):\n        return [self.words[each] for each in line][:most]\n\n"
    "    def read(self, index):\n",
)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("(self.training, index)", "self.x[index]"),
        ("self.x[index]", "[self.words[each] for each in self.x[index]]"),
        ("self.x[index]", "self.numbers(self.x[index])"),
        ("self.x[index]", "numbers(self, index)"),
    ],
)
def test_a_key_that_tells_a_part_of_an_object_is_found_by_others_that_differ_in_the_rest(key, value):
    assert "is found by every Rows" in shared(IN_CLASS, MORE, READ_BY_METHOD, kept("self.kept", key, value))


def test_a_key_that_tells_all_that_is_read_of_an_object_tells_it_apart():
    key = "(tuple(self.x[index]), tuple(self.words))"
    assert shared(IN_CLASS, MORE, READ_BY_METHOD, kept("self.kept", key, "self.numbers(self.x[index])")) is None


@pytest.mark.parametrize("changes", [[IN_CLASS, kept("self.kept", key="(id(self), index)")],
                                     [IN_MODULE, kept("KEPT", key="id(self.x)", value="ordered(self.x)")]])  # fmt: skip
def test_an_address_is_another_objects_once_the_first_is_gone(changes):
    assert "an address, which is another object's once this one is gone" in shared(*changes)


MATCH = """
def match(boxes, labels):
    return labels[overlaps(boxes).argmax(1)]
"""
IN_MATCH = """
MATCHES = {}

def match(boxes, labels):
    key = KEY
    if key not in MATCHES:
        best = overlaps(boxes).argmax(1)
        classes = full(len(best), 0)
        classes[best > 0] = labels[best]
        MATCHES[key] = classes, best
    return MATCHES[key]
"""
GOT = """
class Matcher:
    def __init__(self):
        self.kept = {}

    def match(self, boxes, labels):
        found = self.kept.get(KEY)
        if found is None:
            found = self.kept[KEY] = []
            found.append(labels[overlaps(boxes)])
            self.kept[KEY] = found
        return found
"""
GROUPS = """
class Groups:
    def __init__(self):
        self.groups = {}

    def add(self, boxes, labels):
        if boxes not in self.groups:
            self.groups[boxes] = labels
"""


def remembered(text, key):
    sides = Sides({TRAIN: MATCH.encode()}, {TRAIN: text.replace("KEY", key).encode()})
    return first(Change.of(sides))


@pytest.mark.parametrize("text", [IN_MATCH, GOT])
def test_what_depends_on_an_argument_that_its_key_does_not_tell_is_named(text):
    assert "depends on labels, which its key does not tell" in remembered(text, "tuple(boxes.tolist())")
    assert remembered(text, "(tuple(boxes.tolist()), tuple(labels.tolist()))") is None


def test_what_is_not_given_back_is_no_memory_of_a_result():
    assert remembered(GROUPS, "") is None
