"""Words for parts of Python's sources."""

from __future__ import annotations

import ast

from unstall.prove.lines.syntax import assigned, called, reachable, words


def test_a_part_is_named_by_its_beginning():
    (loop,) = ast.parse("for x in rows:\n    f(x)\n").body
    assert words(loop) == "for x in rows"
    assert len(words(ast.parse("a" * 60).body[0])) == 40


def test_what_is_called_is_named_without_what_it_belongs_to():
    calls = [node for node in ast.walk(ast.parse("a.b(); c(); d[0]()")) if isinstance(node, ast.Call)]
    assert [*map(called, calls)] == ["b", "c", ""]


def test_an_assignment_of_several_is_taken_apart():
    def pairs(source):
        return [tuple(map(ast.unparse, pair)) for pair in assigned(ast.parse(source).body[0])]

    assert pairs("A, B = 1, 2") == [("A", "1"), ("B", "2")]
    assert pairs("A = B = 1") == [("A", "1"), ("B", "1")]
    assert pairs("A, B = both") == [("(A, B)", "both")]


def test_functions_are_found_through_those_that_use_them():
    functions = {name: [ast.parse(body)] for name, body in (("f", "g()"), ("g", "f(); h()"), ("other", "f()"))}

    def used(tree):
        return {called(node) for node in ast.walk(tree) if isinstance(node, ast.Call)}

    assert reachable({"f", "unknown"}, functions, used) == {"f", "g"}
