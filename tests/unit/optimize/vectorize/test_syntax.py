"""How the parts of a loop are read and written as text."""

from __future__ import annotations

import libcst as cst
import pytest

from unstall.optimize.vectorize.syntax import branches, indices, names_in, source, steps


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("(a+b)", "a + b"),
        ("( a  # one\n  *(b +c))", "a * (b + c)"),
        ("f(\n    x, k = 1,\n)", "f(x, k=1)"),
        ("(i, j)", "(i, j)"),
    ],
)
def test_an_expression_has_one_text(written, text):
    assert source(cst.parse_expression(written)) == text


@pytest.mark.parametrize("written", ["x[i, 1:, ...]", "x[(i, 1), :n]", "x[i]"])
def test_indices_one_by_one(written):
    item = cst.ensure_type(cst.parse_expression(written), cst.Subscript)
    assert f"x[{', '.join(map(source, indices(item)))}]" == written
    assert source(item) == written


def test_a_tuple_is_several_indices():
    item = cst.ensure_type(cst.parse_expression("x[(i, j)]"), cst.Subscript)
    assert list(map(source, indices(item))) == ["i", "j"]


def test_attributes_and_keywords_are_no_names():
    assert names_in(cst.parse_expression("f(a.b.c, d=e[a])")) == ["f", "a", "e"]


def test_statements_of_branches_that_share_a_line():
    (decision,) = steps(cst.parse_module("if a:\n    b = 1; c = 2\nelif d:\n    pass\n"))
    taken, other = branches(decision)
    assert [type(step).__name__ for step in (*taken, *other)] == ["Assign", "Assign", "If"]
