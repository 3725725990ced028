"""The programs of `make frameworks-bench`, and the table of what is planted in them; nothing is run."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

from unstall.diagnose.patterns import all_patterns

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "bench" / "frameworks"
SHARED = {"planted", "truth"}


def load_truth():
    """By its file, as the zoo has a module of the same name."""
    sys.path.insert(0, str(ROOT / "tests" / "zoo"))
    spec = importlib.util.spec_from_file_location("truth_of_frameworks", FOLDER / "truth.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TRUTH = load_truth()


def defined_names(tree, prefix=""):
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield prefix + node.name
            yield from defined_names(node, f"{prefix}{node.name}.")


@pytest.mark.parametrize("case", TRUTH.CASES, ids=lambda case: case.name)
def test_what_is_planted_is_in_the_program_and_a_verdict_can_say_it(case):
    tree = ast.parse((FOLDER / case.script).read_text(encoding="utf-8"))
    assert "Planted:" in ast.get_docstring(tree)
    assert {case.culprit, *case.also_culprits} <= {*defined_names(tree), "<module>"}
    assert case.cause in all_patterns()[case.pattern].causes
    assert case.steps


def test_every_program_is_in_the_table_once():
    programs = {path.stem for path in FOLDER.glob("*.py")} - SHARED
    assert programs == {case.name for case in TRUTH.CASES}
    assert len(TRUTH.CASES) == len(programs)


def test_every_package_is_pinned():
    assert all(pin.count("==") == 1 for family in TRUTH.FAMILIES for pin in family.pins)
