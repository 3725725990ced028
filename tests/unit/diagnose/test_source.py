"""Which function a line is in, what it calls, and what a file that cannot be read says."""

from __future__ import annotations

import ast
import inspect
import json.decoder
import textwrap

import pytest
from factory import Source
from hypothesis import given, settings
from hypothesis import strategies as st

from unstall.diagnose import source

TEXT = """
import functools

start = functools.partial(print, 1)

def plain():
    return 1  # in plain

class Outer:
    limit = len("abc")  # in class

    class Inner:
        def method(self):
            return [x + 1 for x in self.items]  # in comprehension

    @functools.lru_cache(
        maxsize=None
    )
    def cached(self):
        def helper(y):
            return y * 2  # in helper
        return helper(3)  # in cached

async def fetch(url):
    return await get(url)  # in fetch

def numbers():
    yield 1  # in numbers

def not_a_generator():
    def inner():
        yield 2  # in inner
    return inner

def delegating():
    yield from numbers()  # in delegating

key = lambda row: row[0]  # in lambda

def sort(rows):
    return sorted(rows, key=lambda row: row[1])  # in nested lambda
"""


@pytest.fixture
def code(tmp_path):
    return Source(tmp_path / "program.py", TEXT)


@pytest.mark.parametrize(
    "name, snippet, qualname",
    [
        ("plain", "# in plain", "plain"),
        ("method", "# in comprehension", "Outer.Inner.method"),
        ("<listcomp>", "# in comprehension", "Outer.Inner.method"),
        ("helper", "# in helper", "Outer.cached.<locals>.helper"),
        ("cached", "# in cached", "Outer.cached"),
        ("cached", "@functools", "Outer.cached"),
        ("fetch", "# in fetch", "fetch"),
        ("<lambda>", "# in nested lambda", "sort"),
        ("<module>", "start =", "<module>"),
        ("", "start =", "<module>"),
        ("Outer", "# in class", "Outer"),
    ],
)
def test_a_line_belongs_to_the_innermost_function_around_it(code, name, snippet, qualname):
    assert source.function_at(code.file, code.line(snippet), name).qualname == qualname


def test_a_name_that_is_not_around_the_line_is_kept_as_it_is(code):
    """A file that was edited while the program ran."""
    assert source.function_at(code.file, code.line("# in plain"), "something_else").qualname == "something_else"


def test_qualified_names_are_those_that_python_gives(tmp_path):
    names = [
        ("def f():\n    def g():\n        return g\n    return g\n", lambda space: space["f"](), 3),
        ("class A:\n    class B:\n        def m(self):\n            return 1\n", lambda space: space["A"].B.m, 4),
        ("class A:\n    def m(self):\n        class C:\n            def n(self): pass\n        return C.n\n",
         lambda space: space["A"]().m(), 4),
    ]  # fmt: skip
    for index, (text, find, line) in enumerate(names):
        path = tmp_path / f"names{index}.py"
        path.write_text(text)
        space: dict[str, object] = {}
        exec(compile(text, str(path), "exec"), space)
        function = find(space)
        assert source.function_at(str(path), line, function.__name__).qualname == function.__qualname__


@pytest.mark.parametrize(
    "name, snippet, generator",
    [
        ("numbers", "# in numbers", True),
        ("delegating", "# in delegating", True),
        ("inner", "# in inner", True),
        ("not_a_generator", "return inner", False),
        ("plain", "# in plain", False),
        ("sort", "# in nested lambda", False),
    ],
)
def test_generators_are_known(code, name, snippet, generator):
    assert source.function_at(code.file, code.line(snippet), name).generator is generator


def test_a_method_knows_its_class_and_a_function_inside_it_does_not(code):
    assert source.function_at(code.file, code.line("# in cached"), "cached").class_name == "Outer"
    assert source.function_at(code.file, code.line("# in comprehension"), "method").class_name == "Inner"
    assert source.function_at(code.file, code.line("# in helper"), "helper").class_name == ""


def test_methods_of_a_class(code):
    assert source.methods_of(code.file, "Outer") == {"cached"}
    assert source.methods_of(code.file, "Inner") == {"method"}
    assert source.methods_of(code.file, "Nobody") == frozenset()


@pytest.mark.parametrize(
    "line, calls",
    [
        ("x = len(rows)", ("len",)),
        ("f.read(10)", ("f.read",)),
        ("self.file.seek(0)", ("self.file.seek",)),
        ("save(torch.stack(batch))", ("save", "torch.stack")),
        ("rows[0].close()", ("?.close",)),
        ("x = 1", ()),
    ],
)
def test_calls_of_a_line_are_dotted_names(tmp_path, line, calls):
    code = Source(tmp_path / "calls.py", f"def f():\n    {line}\n")
    assert set(source.calls_at(code.file, 2)) == set(calls)
    assert source.calls_at(code.file, 1) == ()


def test_calls_of_a_function_are_those_of_all_its_lines(code):
    function = source.function_at(code.file, code.line("# in cached"), "cached")
    assert source.calls_in(code.file, function) == {"functools.lru_cache", "helper"}


def test_code_at_a_line_is_stripped(code):
    assert source.code_at(code.file, code.line("# in plain")) == "return 1  # in plain"
    assert source.code_at(code.file, 0) == source.code_at(code.file, 10_000) == ""


@pytest.mark.parametrize("content", [None, b"def f(:\n", b"\x00\x01", b"\xff\xfe\xfa"])
def test_a_file_that_is_gone_or_does_not_parse_says_nothing(tmp_path, content):
    path = tmp_path / "broken.py"
    if content is not None:
        path.write_bytes(content)
    assert source.function_at(str(path), 1, "f").qualname == "f"
    assert source.function_at(str(path), 1).qualname == "<module>"
    assert source.calls_at(str(path), 1) == ()
    assert source.methods_of(str(path), "A") == frozenset()
    assert not source.is_python_loop(str(path), 1)


LOOPS = """
import numpy as np

def score(boxes):
    total = 0
    for box in boxes:
        total += box[0] * box[1]  # plain
    for box in boxes:
        total += max(box)  # builtin
    for box in boxes:
        total += area(box)  # own
    for box in boxes:
        total += np.sum(box)  # library
    return total  # no loop

def area(box):
    return box[0] * box[1]
"""


@pytest.mark.parametrize(
    "snippet, python",
    [("# plain", True), ("# builtin", True), ("# own", True), ("# library", False), ("# no loop", False)],
)
def test_a_loop_of_plain_python_calls_nothing_but_built_ins_and_the_files_own(tmp_path, snippet, python):
    code = Source(tmp_path / "loops.py", LOOPS)
    assert source.is_python_loop(code.file, code.line(snippet)) is python


def test_a_line_is_in_a_loop_of_its_own_function(tmp_path):
    code = Source(
        tmp_path / "train.py",
        """
        for epoch in range(3):
            run(epoch)  # module

            def inner(x):
                return x  # inner

        def score(texts):
            first = call(texts[0])  # before
            return [
                call(text)  # comprehension
                for text in texts
            ]
        """,
    )
    marks = ("module", "inner", "before", "comprehension")
    looping = [mark for mark in marks if source.in_loop(code.file, code.line(f"# {mark}"))]
    assert looping == ["module", "comprehension"]
    without = [code.line("# inner")]
    assert not source.in_loop(code.file, code.line("# module"), without)
    assert source.in_loop(code.file, code.line("# comprehension"), without)
    assert not source.in_loop(str(tmp_path / "none.py"), 1)


@settings(deadline=None)  # the first look at a file parses it
@given(st.sampled_from([inspect, json.decoder, textwrap]), st.data())
def test_every_function_of_real_code_is_found_at_its_lines(module, data):
    functions = [
        value
        for value in vars(module).values()
        if inspect.isfunction(value) and value.__code__.co_filename == module.__file__ and "<" not in value.__name__
    ]
    function = data.draw(st.sampled_from(functions))
    lines = {line for _, _, line in function.__code__.co_lines() if line}
    line = data.draw(st.sampled_from(sorted(lines)))
    assert source.function_at(module.__file__, line, function.__name__).qualname == function.__qualname__


def test_a_name_that_no_file_can_have_says_nothing():
    assert source.code_at("/a\0b.py", 1) == "" and source.lines_of("/a\0b.py") == []
    assert source.function_at("/a\0b.py", 1).qualname == "<module>"


def test_what_is_around_a_line_comes_from_the_outside_in():
    tree = ast.parse("for a in b:\n    if a:\n        c()\n        d()\n    e()\n")
    kinds = (ast.For, ast.If)
    assert [type(node) for node in source.around(tree, kinds, 3)] == [ast.For, ast.If]
    assert [type(node) for node in source.around(tree, kinds, 3, 5)] == [ast.For]
    assert source.around(tree, kinds, 6) == []
