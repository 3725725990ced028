"""What the toolkit says of single nodes: the numbers of literals, contexts, lines of nodes that were put together."""

from __future__ import annotations

import libcst as cst
import pytest
from libcst.metadata import ExpressionContext
from optimize_builders import make_module

from unstall.optimize.source.module import number_of


@pytest.mark.parametrize(
    ("source", "number"), [("3", 3), ("-1e9", -1e9), ("- -2", 2), ("(0.5)", 0.5), ("n", None), ("-n", None), ("'1'", None)]
)  # fmt: skip
def test_number_of_a_literal(source, number):
    assert number_of(cst.parse_expression(source)) == number


def test_functions_of_one_name_have_different_full_names():
    module = make_module("class A:\n    def f(self):\n        def g():\n            pass\n\n\ndef f():\n    pass\n")
    names = [module.full_name(part) for part in module.all(cst.FunctionDef, cst.ClassDef)]
    assert names == ["A", "A.f", "A.f.g", "f"] and module.full_name(module.tree) == "<module>"


def test_a_keyword_is_no_name_that_is_read():
    module = make_module("f(dim, dim=1)\n")
    contexts = [module.context(node) for node in module.all(cst.Name) if node.value == "dim"]
    assert contexts == [ExpressionContext.LOAD, None]


def test_line_of_a_node_that_was_put_together():
    module = make_module("x = 1\ny = x + 2\n")
    (addition,) = module.all(cst.BinaryOperation)
    made = cst.BinaryOperation(cst.Name("z"), cst.Multiply(), addition)
    assert (module.first_line(addition), module.first_line(made)) == (2, 2)
