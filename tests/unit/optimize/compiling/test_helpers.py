"""The functions and methods that a compiled loop calls."""

from __future__ import annotations

import textwrap

import pytest
import torch
from compiled_loops import agree, changed, line_of
from optimize_builders import make_module

from unstall.optimize.compiling import compiled
from unstall.optimize.source.errors import AnalysisRefused

pytest.importorskip("numba")


def test_functions_that_it_calls_are_compiled_with_it():
    source = """
        def overlap(a, b):
            width = min(a[1], b[1]) - max(a[0], b[0])
            if width <= 0:
                return 0.0
            return width / (max(a[1], b[1]) - min(a[0], b[0]))


        def keep(spans, limit):
            spans = spans.tolist()
            kept = []
            for i in range(len(spans)):
                if all(overlap(spans[i], spans[j]) < limit for j in kept):
                    kept.append(i)
            return kept
        """
    spans = torch.rand(40, 2, generator=torch.Generator().manual_seed(2)).sort(1).values
    for at in ("width = ", "if all"):
        assert 1 < len(agree(source, at, "keep", spans, 0.5)) < 40


def test_methods_that_use_no_object_become_functions():
    source = """
        class Warp:
            band = 3

            def cost(self, a, b):
                return self.gap(a, b) * 0.5

            @staticmethod
            def gap(a, b):
                return abs(a - b)

            def total(self, xs, ys):
                result = 0.0
                for x in xs:
                    for y in ys:
                        result += self.cost(x, y) / self.band
                return result


        def total(xs, ys):
            return Warp().total(xs, ys)
        """
    code = changed(source, "result +=")
    assert "\n\n\ndef _cost(a, b):\n    return _gap(a, b) * 0.5\n" in code
    assert "return _total_loop(xs, ys, self.band)" in code
    agree(source, "result +=", "total", [1.0, 2.0, 4.5], [0.5, 3.0])


def test_a_method_that_uses_its_object_is_refused():
    source = textwrap.dedent(
        """
        class Warp:
            def cost(self, a, b):
                return abs(a - b) * self.scale

            def total(self, xs):
                result = 0.0
                for x in xs:
                    result += self.cost(x, 1.0)
                return [result]
        """
    )
    with pytest.raises(AnalysisRefused, match=r"cost reads self\.scale besides its arguments"):
        compiled(make_module(source), line_of(source, "result +="))


def test_a_method_that_becomes_a_function_names_no_class_of_the_file():
    source = """
        class Warp:
            def cost(self, a: float, b: float = 1.0) -> "Warp | float":
                return abs(a - b)

            def total(self, xs: "list[Later]"):
                result = 0.0
                for x in xs:
                    result += self.cost(x)
                return result


        class Later:
            pass


        def total(xs):
            return Warp().total(xs)
        """
    assert "def _cost(a, b = 1.0):" in changed(source, "result +=")
    agree(source, "result +=", "total", [1.0, 2.0, 4.5])
