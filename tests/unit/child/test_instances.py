"""Attributes are read without giving an instance a dictionary, and none of its code runs."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass, field

import pytest

from unstall.child.instances import attributes
from unstall.child.recording import wrap
from unstall.records.vocabulary import Seam

inline = pytest.mark.skipif(sys.version_info < (3, 11), reason="this Python loses nothing by it")


class Spring:
    calls = 0

    def __init__(self):
        self.position, self.history = 1.0, [1, 2]
        self.move()

    def move(self):
        self.speed = 0.5
        self.later = lambda: self.set_inside()

    def set_inside(self):
        def closure():
            self.hidden = {"a": 1}

        closure()

    @property
    def energy(self):
        type(self).calls += 1
        return 1.0

    @energy.setter
    def energy(self, value):
        self.kept = value


@dataclass
class Point:
    x: float
    tags: list = field(default_factory=list)


class Slotted:
    __slots__ = ("a",)

    def __init__(self):
        self.a = 1


def has_dictionary(value):
    return any(type(held) is dict and "position" in held for held in gc.get_referents(value))


def test_all_that_its_class_stores_is_found_and_no_property_is_asked():
    spring = Spring()
    spring.energy = 3
    assert set(attributes(spring)) == {"position", "history", "speed", "later", "kept"}
    spring.set_inside()
    assert attributes(spring)["hidden"] == {"a": 1} and Spring.calls == 0
    assert attributes(Point(1.0, [2])) == {"x": 1.0, "tags": [2]}
    assert attributes(Slotted()) == {} and attributes(3) == {}


@inline
def test_it_gets_no_dictionary():
    spring = Spring()
    attributes(spring)
    assert not has_dictionary(spring)
    held = spring.__dict__
    assert attributes(spring) == held
    if sys.version_info < (3, 13):  # later ones do not tell
        assert has_dictionary(spring) and attributes(spring) is held


def test_what_is_set_from_outside_is_found_where_it_can_grow():
    spring = Spring()
    spring.extra = [1]
    assert attributes(spring)["extra"] == [1]


def test_a_class_attribute_is_not_the_instances():
    assert "calls" not in attributes(Spring())


class Guarded:
    def __init__(self):
        self.value = 1

    def __getattribute__(self, name):
        raise RuntimeError("asked")

    def __getattr__(self, name):
        raise RuntimeError("asked")


def test_a_class_that_answers_for_its_attributes_is_not_asked():
    assert attributes(Guarded()) == {"value": 1}


def test_a_class_whose_methods_are_recorded_is_read_as_before():
    class Recorded:
        def __init__(self):
            self.a = [1]

    Recorded.__init__ = wrap(Recorded.__init__, Seam("test.init"))
    recorded = Recorded()
    assert attributes(recorded) == {"a": [1]}
