"""What names stand for, as far as the syntax tells."""

import ast

import pytest

from unstall.optimize import bindings


def function(source):
    return ast.parse(source).body[0]


def test_names_that_a_function_makes():
    made = bindings.names_made(
        function(
            "def f(a):\n"
            "    import os.path as p, sys\n"
            "    for i in a: x = i\n"
            "    try: pass\n"
            "    except ValueError as error: pass\n"
            "    def inner(): pass\n"
        )
    )
    assert made == {"a", "p", "sys", "i", "x", "error", "inner"}


@pytest.mark.parametrize("source, root", [("a.b[0].c()", ("a", "b")), ("a", ("a", None)), ("(1).real", ("", "real"))])
def test_what_a_chain_begins_with(source, root):
    assert bindings.root(ast.parse(source, mode="eval").body) == root
