"""Definite assignment: which names are bound wherever a loop begins."""

from __future__ import annotations

import libcst as cst
import pytest
from optimize_builders import make_module

from unstall.optimize.source.assignment import bound_before


def bound(body: str, *, loops_run: bool = False) -> set[str]:
    """Those at the loop over ``here`` in a function of ``given`` with this body."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    module = make_module(f"def work(given, flag):\n{lines}")
    (function,) = module.all(cst.FunctionDef)
    (loop,) = (node for node in module.all(cst.For) if isinstance(node.iter, cst.Name) and node.iter.value == "here")
    return bound_before(module, function, loop, loops_run=loops_run) - {"given", "flag"}


@pytest.mark.parametrize(
    ("before", "names"),
    [
        ("a, b = given\nc: int\nd: int = 3\n", {"a", "b", "d"}),
        ("if flag:\n    a = 1\n    b = 1\nelse:\n    a = 2\n", {"a"}),
        ("if flag:\n    return 0\nelse:\n    a = 2\n", {"a"}),
        ("if flag:\n    a = 1\n", set()),
        ("with given as a:\n    b = 1\n", {"a", "b"}),
        ("try:\n    a = 1\nexcept ValueError:\n    pass\n", set()),
        ("[a for a in given]\n", set()),
    ],
)
def test_what_is_bound_in_any_case(before, names):
    assert bound(f"{before}for i in here:\n    a\nlate = 1") == names


def test_a_loop_before_may_never_have_run():
    before = "for a in given:\n    b = 1\nfor i in here:\n    a"
    assert bound(before) == set()
    assert bound(before, loops_run=True) >= {"a", "b"}


def test_what_the_loop_stands_in_binds_too():
    assert bound("for a in given:\n    with flag as b:\n        c = 1\n        for i in here:\n            a") == {
        "a",
        "b",
        "c",
    }
