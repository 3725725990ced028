"""Finding live functions and putting a stand-in in their place: everybody who holds one must see it."""

import functools

import pytest

from unstall.child.experiments import functions


class Base:
    def __init__(self):
        self.size = 3


class Photos(Base):
    def __init__(self):
        super().__init__()

    def decode(self, x, y=2, *, z=4):
        return x + y + z + self.size

    @staticmethod
    def crop(x):
        return x

    @property
    def area(self):
        return self.size**2


def make_counter():
    count = 10

    def counter(x):
        nonlocal count
        count += 1
        return x + count

    return counter


def numbers():
    yield 1


async def later():
    return 1


def with_mark(original, args, kwargs):
    return "stub", original(*args, **kwargs)


def swapped(name):
    (function,) = functions.find(name, __file__)
    return functions.Replacement(function, with_mark)


def test_whoever_holds_a_method_sees_the_stand_in_and_then_the_original_again():
    photos = Photos()
    bound, partial = photos.decode, functools.partial(photos.decode, 1)
    stand_in = swapped("Photos.decode")
    stand_in.on()
    assert bound(1, z=0) == ("stub", 6)
    assert partial() == ("stub", 10)
    stand_in.off()
    assert bound(1, z=0) == 6


def test_a_closure_keeps_its_variables():
    counter = make_counter()
    stand_in = swapped("make_counter.counter")
    stand_in.on()
    assert counter(1) == ("stub", 12)
    stand_in.off()
    assert counter(1) == 13


def test_super_and_static_methods_and_properties_work():
    for name, use in (("Photos.crop", lambda: Photos.crop(5)), ("Photos.area", lambda: Photos().area)):
        plain = use()
        stand_in = swapped(name)
        stand_in.on()
        assert use() == ("stub", plain)
        stand_in.off()
    (function,) = functions.find("Photos.__init__", __file__)
    stand_in = functions.Replacement(function, lambda original, args, kwargs: original(*args, **kwargs))
    stand_in.on()
    assert Photos().size == 3
    stand_in.off()


def test_errors_pass_through():
    stand_in = swapped("Photos.decode")
    stand_in.on()
    with pytest.raises(TypeError, match="missing"):
        Photos().decode()
    stand_in.off()


@pytest.mark.parametrize(
    "name", ["Photos.decode", f"{__name__}.Photos.decode", f"{__name__.rpartition('.')[2]}.Photos.decode"]
)
def test_a_function_is_found_by_any_of_its_names(name):
    assert functions.find(name) == [Photos.decode]


@pytest.mark.parametrize("name", ["Photos.encode", "hotos.decode", "nowhere.Photos.decode"])
def test_what_is_not_there_is_not_found(name):
    with pytest.raises(functions.NotFound, match="alive"):
        functions.find(name)


def test_generators_and_coroutines_are_refused():
    assert "generator" in functions.why_not(numbers)
    assert "coroutine" in functions.why_not(later)
    assert functions.why_not(make_counter) is None
