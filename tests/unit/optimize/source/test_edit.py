"""Changes keep every space and comment that they need not touch."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from optimize_builders import make_module

from unstall.optimize.source import edit
from unstall.optimize.source.module import dotted
from unstall.optimize.source.places import CallSite


def with_keyword(source, name, value):
    module = make_module(source)
    call = next(module.all(cst.Call))
    return edit.replaced(module.tree, call, edit.with_keyword(call, name, value)).code


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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(a, **more)", 'f(a, **{**more, "n": 2})'),
        ("f(\n    a,\n    **self.more(),\n)\n", 'f(\n    a,\n    **{**self.more(), "n": 2},\n)\n'),
        ('f(**{**more, "m": 1})', 'f(**{**more, "m": 1, "n": 2})'),
        ("f(n=1, **more)", "f(n=2, **more)"),
    ],
)
def test_a_keyword_that_others_may_hold_is_given_once(before, after):
    assert with_keyword(before, "n", "2") == after


def test_a_keyword_can_be_taken_away():
    module = make_module("f(a, n=1, m=2)")
    call = next(module.all(cst.Call))
    assert module.code(edit.without_keyword(call, "n")) == "f(a, m=2)"
    assert module.code(edit.without_keyword(call, "m")) == "f(a, n=1)"


def test_a_call_is_found_by_columns_in_bytes():
    source = "x = 'ü'; y = f(g(1), 2)\n"
    column = source.encode().index(b"f(")
    module = make_module(source)
    site = CallSite(Path("x.py"), 1, "<module>", (1, 1, column, len(source.encode()) - 1))
    call = module.call(site)
    assert call is not None and dotted(call.func) == "f"


def test_without_columns_only_an_unambiguous_call_is_found():
    module = make_module("a = DataLoader(f(1))\nb = DataLoader(DataLoader(2))\n")
    assert module.call(CallSite(Path("x.py"), 1, "<module>"), "DataLoader") is not None
    assert module.call(CallSite(Path("x.py"), 2, "<module>"), "DataLoader") is None


def test_statements_go_after_another():
    module = make_module("def f():\n    # about x\n    x = 1\n    return x\n")
    line = next(module.all(cst.SimpleStatementLine))
    code = edit.replaced(
        module.tree, line, line, *(edit.statement(module.tree, one) for one in ("b = 2", "c = 3"))
    ).code
    assert code == "def f():\n    # about x\n    x = 1\n    b = 2\n    c = 3\n    return x\n"
