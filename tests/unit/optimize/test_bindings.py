"""What names stand for, as far as the syntax tells."""

import ast

import pytest

from unstall.optimize import bindings


def function(source):
    return ast.parse(source).body[0]


def test_all_parameters_are_found():
    given = bindings.arguments(function("def f(a, /, b, *c, d=1, **e): pass"))
    assert {one.arg for one in given} == {"a", "b", "c", "d", "e"}


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


def test_an_alias_of_an_alias_is_one():
    found = bindings.aliases(function("def f(a):\n    b = a\n    c = b.rows\n    d = len(a)\n    e = [1]\n"), {"a"})
    assert found == {"b", "c"}


@pytest.mark.parametrize("source, root", [("a.b[0].c()", ("a", "b")), ("a", ("a", None)), ("(1).real", ("", "real"))])
def test_what_a_chain_begins_with(source, root):
    assert bindings.root(ast.parse(source, mode="eval").body) == root


def test_names_of_a_module_that_never_change():
    tree = ast.parse("import os\nRATE = 3\nx = f()\ny = 1\ny = 2\ndef g(): pass\nfor z in x: w = 1\n")
    assert set(bindings.bound_once_for_all(tree)) >= {"os", "RATE", "g"}
    assert not set(bindings.bound_once_for_all(tree)) & {"x", "y", "z"}
    assert set(bindings.module_variables(tree)) == {"RATE", "x"}
