"""Loops that nobody wrote, compiled and plain: what they give and what they change is the same."""

from __future__ import annotations

import copy
import random

import pytest
from optimize_builders import make_module

from unstall.optimize.compiling import compiled
from unstall.optimize.source.errors import NotApplicable

pytest.importorskip("numba")
pytestmark = [pytest.mark.long, pytest.mark.slow]

_VALUES = ("a", "b", "row[0]", "row[-1]", "rows[i][0]", "acc", "1", "2.5", "len(row)", "i", "grid[i][0]")


class Writer:
    """Writes functions with a loop over rows of numbers."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self, depth):
        form = self.random.random()
        if depth == 0 or form < 0.35:
            return self.random.choice(_VALUES)
        one, other = self.value(depth - 1), self.value(depth - 1)
        if form < 0.7:
            return f"({one} {self.random.choice('+-*')} {other})"
        if form < 0.8:
            return f"{self.random.choice(('min', 'max'))}({one}, {other})"
        if form < 0.9:
            return f"({one} if {self.value(0)} < {self.value(0)} else {other})"
        return f"abs({one})"

    def lines(self, indent, depth):
        space, form = "    " * indent, self.random.randrange(8)
        if form == 0 and depth:
            return [f"{space}if {self.value(1)} > {self.value(1)}:", *self.lines(indent + 1, depth - 1)]
        if form == 1 and depth:
            return [f"{space}for a in row:", *self.lines(indent + 1, depth - 1)]
        return [
            space
            + self.random.choice(
                (
                    f"acc = {self.value(2)}",
                    f"acc += {self.value(2)}",
                    f"b = {self.value(2)}",
                    f"grid[i][{self.random.randrange(2)}] = {self.value(2)}",
                    f"out.append({self.random.choice((self.value(2), 'row', 'row[:]', 'a'))})",
                    f"out += [{self.value(1)}, {self.value(1)}]",
                )
            )
        ]

    def function(self):
        body = [line for _ in range(self.random.randrange(1, 5)) for line in self.lines(2, 2)]
        given = self.random.choice(("out, acc", "acc", "[acc, a, b]", "out"))
        head = ["def f(rows, grid, a, b):", "    out = []", "    acc = 0.0", "    for i, row in enumerate(rows):"]
        return "\n".join([*head, *body, f"    return {given}", ""])

    def arguments(self):
        kind = self.random.choice((float, int))
        rows = [[kind(self.random.randrange(-3, 9)) for _ in range(2)] for _ in range(3)]
        grids = ([[0.0, 1.0] for _ in rows], [[0, 1] for _ in rows], rows)
        return rows, self.random.choice(grids), kind(2), self.random.choice((1.5, 3))


def called(function, arguments):
    try:
        return function(*arguments)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("seed", range(4))
def test_any_loop_does_the_same_compiled(seed):
    writer, kernels = Writer(seed), []
    for _ in range(20):
        source, arguments = writer.function(), writer.arguments()
        try:
            changed = compiled(make_module(source), 4).tree.code
        except NotApplicable:
            continue
        plain, new = {}, {}
        exec(source, plain)
        exec(changed, new)
        by_plain, by_new = copy.deepcopy(arguments), copy.deepcopy(arguments)
        assert called(plain["f"], by_plain) == called(new["f"], by_new), source
        assert by_plain == by_new, source
        kernels += [loop for loop in new.values() if type(loop).__name__ == "_CompiledLoop"]
    assert any(kernel is not None for loop in kernels for kernel in loop.kernels.values())
