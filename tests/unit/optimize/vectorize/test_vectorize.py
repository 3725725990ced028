"""A loop's array form must give the loop's own numbers, bit for bit, or be refused."""

from __future__ import annotations

import random
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optimize_builders import make_module
from PIL import Image

from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.vectorize import vectorize

HUE = """
    import colorsys
    import numpy as np
    from PIL import Image

    def shift(image, amount):
        out = image.copy()
        for y in range(image.height):
            for x in range(image.width):
                r, g, b = image.getpixel((x, y))
                h, s, v = colorsys.rgb_to_hsv(r / 255, g / 255, b / 255)
                r, g, b = colorsys.hsv_to_rgb((h + amount) % 1.0, s, v)
                out.putpixel((x, y), (int(r * 255), int(g * 255), int(b * 255)))
        return out
"""


def both(source, marker="for "):
    """The module's namespace as written, and with its first loop replaced."""
    text = textwrap.dedent(source).lstrip()
    line = next(number for number, one in enumerate(text.splitlines(), 1) if marker in one)
    module = make_module(text)
    changed = vectorize(module, line + 1).tree.code
    spaces = []
    for one in (text, changed):
        space: dict = {}
        exec(compile(one, "module.py", "exec"), space)
        spaces.append(space)
    return spaces


def refused(source):
    text = textwrap.dedent(source).lstrip()
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "for " in one)
    with pytest.raises(AnalysisRefused) as error:
        vectorize(make_module(text), line + 1)
    return str(error.value)


HUE_SPACES = None


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-2, 2))
def test_pixels_through_a_library_function_of_branches(seed, amount):
    global HUE_SPACES
    HUE_SPACES = HUE_SPACES or both(HUE)
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (5, 7, 3)).astype(np.uint8)
    pixels[0] = pixels[0, :, :1]  # grey: the branch without a hue
    pixels[1] = rng.choice([0, 255], (7, 3))
    image = Image.fromarray(pixels)
    slow, fast = (space["shift"](image, amount) for space in HUE_SPACES)
    assert slow.tobytes() == fast.tobytes()
    assert image.tobytes() == pixels.tobytes()


def test_pixel_access_writes_into_the_same_image():
    slow, fast = both("""
        import numpy as np
        from PIL import Image

        def negative(image):
            pixels = image.load()
            for y in range(image.height):
                for x in range(image.width):
                    r, g, b = pixels[x, y]
                    pixels[x, y] = 300 - r, g // 2, (b + x) % 256
            return image
    """)
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (4, 6, 3)).astype(np.uint8))
    one, two = image.copy(), image.copy()
    assert slow["negative"](one) is one and fast["negative"](two) is two
    assert one.tobytes() == two.tobytes() != image.tobytes()


def test_one_channel_and_loops_in_the_other_order():
    slow, fast = both("""
        import numpy as np
        from PIL import Image

        def invert(image, out):
            for x in range(1, image.width):
                for y in range(2, image.height):
                    v = image.getpixel((x, y))
                    out.putpixel((x, y), 300 - v)
            return out
    """)
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (5, 4)).astype(np.uint8))
    one, two = (space["invert"](image, image.copy()) for space in (slow, fast))
    assert one.tobytes() == two.tobytes() != image.tobytes()


def test_a_list_that_is_read_in_several_places_becomes_an_array_once():
    source = """
        import numpy as np

        class Plate:
            def blur(self, cells_array):
                out = [list(row) for row in self.cells]
                for y in range(1, len(out) - 1):
                    for x in range(1, len(out[0]) - 1):
                        out[y][x] = self.cells[y - 1][x] + self.cells[y + 1][x] - cells_array * self.cells[y][x]
                return out
    """
    text = textwrap.dedent(source).lstrip()
    written = vectorize(make_module(text), 7).tree.code
    assert written.count("asarray(self.cells)") == 1 and "cells_array_2 = " in written
    made = []
    for space in both(source):
        plate = space["Plate"]()
        plate.cells = [[(7 * x + 3 * y * y) % 11 / 7 for x in range(6)] for y in range(5)]
        made.append(plate.blur(0.3))
    assert made[0] == made[1]


def test_a_list_that_the_loop_writes_is_read_when_it_is_needed():
    slow, fast = both("""
        import numpy as np

        def steps(first, second):
            for y in range(3):
                for x in range(4):
                    first[y][x] = first[y][x] * 2
                    second[y][x] = first[y][x] + first[y][x] * 0.5
            return second
    """)
    cells = [[float(x + y) for x in range(4)] for y in range(3)]
    one, two = (space["steps"]([row[:] for row in cells], [row[:] for row in cells]) for space in (slow, fast))
    assert one == two


def test_nested_lists_with_neighbours_keep_plain_floats():
    slow, fast = both("""
        import numpy as np

        def diffuse(cells, rate=0.2):
            out = [row[:] for row in cells]
            for y in range(1, len(cells) - 1):
                for x in range(1, len(cells[0]) - 1):
                    around = cells[y - 1][x] + cells[y + 1][x] + cells[y][x - 1] + cells[y][x + 1]
                    out[y][x] = cells[y][x] + rate * (around - 4 * cells[y][x])
            return out
    """)
    rng = random.Random(1)
    cells = [[rng.uniform(-1, 1) for _ in range(6)] for _ in range(5)]
    assert slow["diffuse"](cells) == fast["diffuse"](cells)
    assert type(fast["diffuse"](cells)[1][1]) is float


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_conditions_that_do_not_vary_and_values_of_the_variables(kind):
    slow, fast = both("""
        import math
        import numpy as np

        def draw(kind, cx, cy, radius, side=9):
            canvas = [[0.0] * side for _ in range(side)]
            for y in range(side):
                for x in range(side):
                    dx, dy = x - cx, y - cy
                    if kind == 0:
                        distance = math.sqrt(dx * dx + dy * dy)
                    elif kind == 1:
                        distance = max(abs(dx), abs(dy))
                    else:
                        distance = abs(dx) + abs(dy)
                    canvas[y][x] = 1.0 if distance < radius else 0.0
            return canvas
    """)
    assert slow["draw"](kind, 3.3, 4.4, 2.5) == fast["draw"](kind, 3.3, 4.4, 2.5)


def test_one_axis_of_an_array_and_an_early_return_in_the_users_function():
    slow, fast = both("""
        import numpy as np

        def squash(v):
            if v < 0:
                return 0.0
            v = v * 2
            if v > 1 and v < 3:
                return v / 3
            return 1.0

        def run(a, n):
            out = np.zeros(n)
            for i in range(n):
                out[i] = squash(a[i])
            return out
    """)
    values = np.linspace(-1, 2, 31)
    assert (slow["run"](values, 31) == fast["run"](values, 31)).all()


def test_table_lookup_and_augmented_assignment():
    slow, fast = both("""
        import numpy as np

        def run(grid, table, rows, columns):
            for y in range(rows):
                for x in range(columns):
                    v = grid[y, x]
                    v += 1
                    grid[y, x] = table[v] * 2
            return grid
    """)
    grid = np.random.default_rng(2).integers(0, 9, (3, 4))
    table = list(range(100, 120))
    assert (slow["run"](grid.copy(), table, 3, 4) == fast["run"](grid.copy(), table, 3, 4)).all()


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("total = total + a[y, x]\n        out[y, x] = total", "turn before"),
        ("out[y, x] = out[y - 1, x] + a[y, x]", "another wrote"),
        ("out[x, x] = a[y, x]", "not its own cell"),
        ("out[y, x] = math.sin(a[y, x])", "math.sin"),
        ("out[y, x] = a[y, x] ** 0.5", "round"),
        ("print(a[y, x])\n        out[y, x] = 1", "Expr"),
        ("v = a[y, x]\n        if v > 1:\n            continue\n        out[y, x] = v", "Continue"),
        ("out[y, x] = random.random()", "random"),
        ("last = a[y, x]\n        out[y, x] = last", "after the loop"),
    ],
)
def test_what_depends_on_order_or_may_round_differently_is_refused(body, word):
    source = f"""import math, random
import numpy as np

def run(a, out, rows, columns):
    total = 0
    for y in range(rows):
      for x in range(columns):
        {body}
    return {"last" if "last" in body else "out"}
"""
    assert word in refused(source)


def test_a_loop_without_numpy_in_the_module_is_refused():
    assert "NumPy" in refused("def f(a, n):\n    for i in range(n):\n        a[i] = a[i] + 1\n    return a\n")


def test_functions_and_numpy_under_other_names():
    slow, fast = both("""
        from colorsys import rgb_to_hsv as hue
        from math import sqrt as root
        import numpy as xp

        def run(grid, rows, columns):
            for y in range(rows):
                for x in range(columns):
                    h, s, v = hue(grid[y, x], 0.5, 0.25)
                    grid[y, x] = root(
                        h  # a colour
                        + s) * v
            return grid
    """)
    grid = np.random.default_rng(3).random((3, 4))
    assert (slow["run"](grid.copy(), 3, 4) == fast["run"](grid.copy(), 3, 4)).all()


def test_a_function_of_the_module_with_the_name_of_a_builtin_is_that_function():
    slow, fast = both("""
        import numpy as np

        def round(v):
            return v * 2

        def run(a, n):
            for i in range(n):
                a[i] = round(a[i])
            return a
    """)
    assert (slow["run"](np.arange(3.5), 3) == fast["run"](np.arange(3.5), 3)).all()
