"""Changes keep every space and comment that they need not touch."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from unstall.optimize import rewrite
from unstall.optimize.case import Call


def with_keyword(source, name, value):
    module = cst.parse_module(source)
    call = rewrite.Found(module).nodes(cst.Call)[0]
    return rewrite.replaced(module, call, rewrite.with_keyword(call, name, value)).code


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()", "f(n=2)"),
        ("f(a)", "f(a, n=2)"),
        ("f(a, b = 1)  # why\n", "f(a, b = 1, n=2)  # why\n"),
        ("f(a, n=0)", "f(a, n=2)"),
        ("f(a, n = 0,)", "f(a, n = 2,)"),
        ("f(\n    a,\n    b=1,\n)\n", "f(\n    a,\n    b=1,\n    n=2,\n)\n"),
        ("f(\n    a,  # first\n    b=1\n)\n", "f(\n    a,  # first\n    b=1,\n    n=2\n)\n"),
        ("f(\n    a,\n    b=1,  # last\n)\n", "f(\n    a,\n    b=1,  # last\n    n=2,\n)\n"),
        ("f(\n    a,\n    b=1  # last\n)\n", "f(\n    a,\n    b=1,  # last\n    n=2\n)\n"),
        ("f(a,\n  b)", "f(a,\n  b,\n  n=2)"),
        ("f(\n\ta,\n)\n", "f(\n\ta,\n\tn=2,\n)\n"),
    ],
)
def test_a_keyword_is_laid_out_like_its_neighbours(before, after):
    assert with_keyword(before, "n", "2") == after


def test_a_keyword_can_be_taken_away():
    module = cst.parse_module("f(a, n=1, m=2)")
    call = rewrite.Found(module).nodes(cst.Call)[0]
    assert module.code_for_node(rewrite.without_keyword(call, "n")) == "f(a, m=2)"
    assert module.code_for_node(rewrite.without_keyword(call, "m")) == "f(a, n=1)"


def test_a_call_is_found_by_columns_in_bytes():
    source = "x = 'ü'; y = f(g(1), 2)\n"
    column = source.encode().index(b"f(")
    found = rewrite.Found(cst.parse_module(source))
    call = found.call(Call(Path("x.py"), 1, "<module>", (1, 1, column, len(source.encode()) - 1)))
    assert call is not None and rewrite.name_of(call) == "f"


def test_without_columns_only_an_unambiguous_call_is_found():
    found = rewrite.Found(cst.parse_module("a = DataLoader(f(1))\nb = DataLoader(DataLoader(2))\n"))
    is_loader = lambda call: rewrite.name_of(call) == "DataLoader"  # noqa: E731
    assert found.call(Call(Path("x.py"), 1, "<module>"), is_loader) is not None
    assert found.call(Call(Path("x.py"), 2, "<module>"), is_loader) is None


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import sys\n\nx = 1\n", 1),
        ('"""Doc."""\n\nimport sys\n', 3),
        ("from __future__ import annotations\n\nimport sys\n", 3),
        ("import argparse\nimport sys\nfrom x import y\n", 2),
        ("x = 1\n", 1),
    ],
)
def test_an_import_goes_where_it_sorts(source, line):
    code = rewrite.with_import(cst.parse_module(source), "os").code
    assert code.splitlines()[line - 1] == "import os"
    assert rewrite.with_import(cst.parse_module(code), "os").code == code


def test_statements_around_another_keep_its_comment_above():
    module = cst.parse_module("def f():\n    # about x\n    x = 1\n    return x\n")
    statement = module.body[0].body.body[0]
    code = rewrite.with_lines_around(module, statement, before=["a = 0\n"], after=["b = 2\n"]).code
    assert code == "def f():\n    # about x\n    a = 0\n    x = 1\n    b = 2\n    return x\n"
