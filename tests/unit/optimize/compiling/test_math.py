"""Functions of the module ``math`` in compiled loops: the same numbers to the last bit, and the same errors."""

from __future__ import annotations

import math

import pytest
from compiled_loops import agree, both
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

FUNCTIONS = ("sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "atan", "tanh", "fabs", "isnan", "isinf")
APPLIED = """
    import math


    def applied(values):
        out = []
        for value in values:
            out.append(math.{function}(value))
        return out
    """
COMPILED = {function: both(APPLIED.format(function=function), "out.append", "applied") for function in FUNCTIONS}
NUMBERS = [0.0, -0.0, 1.0, -1.0, 1e-310, 1e300, 709.0, 710.0, -745.0, math.inf, -math.inf, math.nan, 2, -3, 0]


def given_by(function, values):
    try:
        return repr(function(values))
    except (ValueError, OverflowError) as error:
        return type(error)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("number", NUMBERS)
def test_at_the_ends_of_what_it_is_defined_for(function, number):
    old, new, _ = COMPILED[function]
    assert given_by(new, [number]) == given_by(old, [number])


@pytest.mark.parametrize("function", FUNCTIONS)
@given(st.lists(st.floats(), min_size=1, max_size=20))
@settings(max_examples=30, deadline=None)
def test_of_any_numbers(function, values):
    old, new, loop = COMPILED[function]
    assert given_by(new, values) == given_by(old, values)
    assert all(kernel is not None for kernel in loop.kernels.values())


@pytest.mark.parametrize("imported", ["from math import sqrt as root, atan2", "import math as m"])
def test_by_another_name(imported):
    root, atan2 = ("root", "atan2") if "from" in imported else ("m.sqrt", "m.atan2")
    source = f"""
        {imported}


        def turned(xs, ys):
            out = []
            for i in range(len(xs)):
                out.append({root}(xs[i]) + {atan2}(xs[i], ys[i]))
            return out
        """
    agree(source, "out.append", "turned", [1.0, 2.0, 0.5], [-1.0, 0.0, 3.5])


def test_in_a_function_that_it_calls():
    source = """
        import math


        def far(x, y):
            return math.sqrt(x * x + y * y) + math.pi


        def distances(xs, y):
            out = []
            for x in xs:
                out.append(far(x, y))
            return out
        """
    agree(source, "out.append", "distances", [1.0, 2.0, 0.5], 2.5)
