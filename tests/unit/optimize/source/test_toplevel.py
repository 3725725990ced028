"""Imports and definitions go where a person would put them, and take no name that is in use."""

from __future__ import annotations

from collections import Counter
from importlib import resources

import libcst as cst
import pytest

from unstall.optimize.source import toplevel
from unstall.optimize.source.errors import NameTaken


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
    code = toplevel.with_import(cst.parse_module(source), "os").code
    assert code.splitlines()[line - 1] == "import os"
    assert toplevel.with_import(cst.parse_module(code), "os").code == code


SET = 'os.environ.setdefault("A", "1")'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import numpy\n\nx = 1\n", f"import os\n\n{SET}\n\nimport numpy\n\nx = 1\n"),
        ("import os\nimport numpy\n", f"import os\n\n{SET}\n\nimport numpy\n"),
        ('"""Doc."""\n\nimport sys\nimport os\n', f'"""Doc."""\n\nimport os\n\n{SET}\n\nimport sys\n'),
        (
            "from __future__ import annotations\n\nimport numpy\n",
            f"from __future__ import annotations\n\nimport os\n\n{SET}\n\nimport numpy\n",
        ),
        ("import os, numpy\n", f"import os\n\n{SET}\n\nimport os, numpy\n"),
        ("import os as o\nx = 1\n", f"import os\n\n{SET}\n\nimport os as o\nx = 1\n"),
    ],
)
def test_what_must_be_ahead_of_all_imports_is(source, expected):
    assert toplevel.with_statement_before_imports(cst.parse_module(source), SET, needs="os").code == expected


def test_an_import_after_the_last_one_leaves_the_blank_lines_to_what_follows():
    code = toplevel.with_import(cst.parse_module("import os\n\n\nclass A:\n    x = 1\n"), "sys").code
    assert code == "import os\nimport sys\n\n\nclass A:\n    x = 1\n"


@pytest.mark.parametrize("runtime", ["batches", "remembered", "sample_cache"])
def test_what_a_patch_brings_along_runs_by_itself_and_is_brought_once(runtime):
    pytest.importorskip("torch")
    text = toplevel.with_runtime(cst.parse_module("import sys\n\nx = 1\n"), runtime).code
    space: dict = {}
    exec(compile(text, "patched.py", "exec"), space)
    assert "unstall" not in text and "Any" not in text and "->" not in text
    assert toplevel.with_runtime(cst.parse_module(text), runtime).code == text


def test_any_two_remedies_can_change_one_file():
    names: Counter[str] = Counter()
    for file in resources.files("unstall.optimize.runtime").iterdir():
        if file.name.endswith(".py"):
            tree = cst.parse_module(file.read_text())
            names.update(part.name.value for part in tree.body if isinstance(part, (cst.ClassDef, cst.FunctionDef)))
    assert len(names) > 20 and [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("line", ["class _Batches: pass", "torch = 1", "import other as itertools"])
def test_a_name_that_means_something_else_is_not_taken(line):
    with pytest.raises(NameTaken, match="for something else"):
        toplevel.with_runtime(cst.parse_module(f"{line}\n"), "batches")


def test_line_endings_and_tabs_stay_those_of_the_file():
    tree = cst.parse_module(b"import sys\r\n\r\nif sys:\r\n\tx = 1\r\n")
    code = toplevel.with_runtime(tree, "remembered").code
    assert code.count("\n") == code.count("\r\n") and "\tdef __init__" in code and "    def" not in code
