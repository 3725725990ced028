"""The environment variables that unstall sets and reads have one constant each."""

import re
from pathlib import Path

import unstall
from unstall import environment

ROOT = Path(unstall.__file__).parent
NAMES = {value for name, value in vars(environment).items() if name.isupper()}
SCRIPTS = {
    "child/bootstrap/sitecustomize.py",  # runs before unstall can be imported
    "sandbox/census.py",  # the keeper imports it
    "sandbox/keeper.py",  # runs alone
}


def _named_in(path):
    """Names in strings; in docstrings they stand between backquotes."""
    return set(re.findall(r"[\"'](UNSTALL_[A-Z_]+)\b", path.read_text()))


def test_names_are_spelled_out_once():
    spelled = {str(path.relative_to(ROOT)): _named_in(path) for path in ROOT.rglob("*.py")}
    assert {path for path, names in spelled.items() if names} == {*SCRIPTS, "environment.py"}


def test_scripts_that_run_without_the_package_use_the_same_names():
    for script in SCRIPTS:
        names = _named_in(ROOT / script)
        assert names and names <= NAMES, script


def test_each_is_told_in_the_docs():
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
    assert {name for name in NAMES if f"`{name}`" not in page} == set()
