"""The table of truth fits the programs it speaks of; nothing is run."""

import ast
import pathlib
import sys

import pytest

from unstall.diagnose.patterns import all_patterns
from unstall.records.vocabulary import HEALTHY

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

from cases import MODULE  # noqa: E402
from truth import CASES  # noqa: E402

SHARED = {"cases", "common", "installed", "photo_server", "truth", "test_truth"}


def defined_names(tree: ast.AST, prefix: str = "") -> set[str]:
    """Qualified names of all functions, nested ones by their chain of classes and functions."""
    names = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(prefix + node.name)
            names |= defined_names(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            names |= defined_names(node, f"{prefix}{node.name}.")
        else:
            names |= defined_names(node, prefix)
    return names


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_names_a_program_and_functions_in_it(case):
    source = (HERE / case.script).read_text(encoding="utf-8")
    names = defined_names(ast.parse(source)) | {MODULE}
    culprits = {case.culprit, *case.also_culprits} - {None}
    assert culprits <= names


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_patterns_are_the_verdicts_own_words(case):
    patterns = {case.pattern, *case.also_patterns}
    assert patterns <= {HEALTHY, *all_patterns()}


def test_names_are_unique():
    assert len({case.name for case in CASES}) == len(CASES)
    assert len({case.script for case in CASES}) == len(CASES)


def test_every_program_has_its_truth():
    programs = {path.stem for path in HERE.glob("*.py")} - SHARED
    assert programs == {pathlib.Path(case.script).stem for case in CASES}


def test_a_planted_case_says_cause_and_culprit_and_a_healthy_one_neither():
    for case in CASES:
        planted = case.pattern != "healthy"
        assert bool(case.cause) == planted
        assert bool(case.culprit) == planted


def test_programs_tell_what_is_planted_only_in_their_docstring():
    for case in CASES:
        tree = ast.parse((HERE / case.script).read_text(encoding="utf-8"))
        assert ast.get_docstring(tree)
        for name in defined_names(tree):
            assert not {"slow", "bottleneck", "culprit"} & set(name.lower().split("_"))
