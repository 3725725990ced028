"""What the bench of real programs makes of a fix's diff, and of rows."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

_BENCH = Path(__file__).resolve().parents[2] / "bench"
_LOADED = ("real", "machine", "real_cases", "real_table")

_BEFORE = """\
import time

def load(path):
    def parse(text):
        return text.split()
    return parse(path)

class Loader:
    def __iter__(self):
        for name in self.names:
            yield load(name)

TABLE = load("table")
"""


@pytest.fixture(scope="module")
def real():
    sys.path.insert(0, str(_BENCH))  # it imports its neighbours
    try:
        spec = importlib.util.spec_from_file_location("real", _BENCH / "real.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules["real"] = module
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(_BENCH))
        for name in _LOADED:
            sys.modules.pop(name, None)


@pytest.fixture
def repository(tmp_path):
    return committed(tmp_path, tmp_path)


def committed(tmp_path, sources):
    """Two commits: the second one changes Loader.__iter__ and a line outside of functions, and documents load."""
    sources.mkdir(parents=True, exist_ok=True)

    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    (sources / "pkg").mkdir()
    (sources / "pkg" / "loader.py").write_text(_BEFORE)
    (tmp_path / "other.py").write_text("x = 1\n")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "Before")
    changed = _BEFORE.replace("yield load(name)", "yield self.loaded[name]").replace('"table"', '"list"')
    changed = changed.replace("def load(path):", 'def load(path):\n    """Read."""  # only said')
    (sources / "pkg" / "loader.py").write_text(changed)
    (sources / "pkg" / "new.py").write_text("def fast():\n    pass\n")
    (tmp_path / "other.py").write_text("x = 2\n")
    git("add", ".")
    git("commit", "--quiet", "-m", "Fix")
    return tmp_path


def case(real, **fields):
    return real.Case("a", "b/c", "HEAD", "pkg", ("input-bound",), "faster", **fields)


def row(real, name="recbole-narm", layout="checkout", **fields):
    figures = {
        "pattern_right": True,
        "culprit_right": True,
        "named": True,
        "caller_right": True,
        "confidence": "high",
        "gain": 2.0,
    }
    return real.Row(name, layout, "input-bound", culprit="f, a.py:1", **{**figures, **fields})


def test_the_package_may_lie_in_a_folder_of_the_repository(real, tmp_path):
    within = case(real, folder="src")
    repository = committed(tmp_path / "repository", tmp_path / "repository" / "src")
    assert real.changed_functions(repository, within).keys() == {
        ("pkg/loader.py", "Loader.__iter__"), ("pkg/loader.py", "<module>")
    }  # fmt: skip
    real.export(repository, within, within.before, tmp_path / "tree")
    assert [path.name for path in (tmp_path / "tree" / "pkg").iterdir()] == ["loader.py"]
    assert [path.name for path in (tmp_path / "tree").iterdir()] == ["pkg"]


def test_lines_belong_to_the_innermost_function(real):
    assert real.by_function(real.functions_of(_BEFORE), {5, 6, 11, 13}) == {
        "load.parse": {5}, "load": {6}, "Loader.__iter__": {11}, "<module>": {13},
    }  # fmt: skip


def test_a_fix_changes_functions_of_its_package_only(real, repository):
    changed = real.changed_functions(repository, case(real))
    assert changed == {("pkg/loader.py", "Loader.__iter__"): {11}, ("pkg/loader.py", "<module>"): {13}}


def test_a_culprit_is_the_fix_wherever_the_package_lies(real):
    changed = {("pkg/loader.py", "Loader.__iter__"): {11}, ("pkg/loader.py", "<module>"): {13}}

    def named(function, file="/env/site-packages/pkg/loader.py", line=10):
        return real.is_changed({"function": function, "file": file, "line": line}, changed)

    assert named("Loader.__iter__")
    assert named("Loader.__iter__", "pkg/loader.py")
    assert not named("load")
    assert not named("Other.__iter__")
    assert not named("Loader.__iter__", "pkg/other.py")
    assert named("<module>", line=12)
    assert not named("<module>", line=1)
    assert not real.is_changed({}, changed)


@pytest.mark.parametrize(("expected", "named", "holds"), [
    ({"low": 1.5, "high": 3.0}, True, True),
    ({"low": 2.5, "high": 3.0}, True, False),
    ({"low": 1.5, "high": 3.0}, False, None),
    ({}, True, None),
])  # fmt: skip
def test_an_interval_is_judged_only_where_it_is_of_the_fix(real, expected, named, holds):
    assert row(real, expected=expected, named=named).holds is holds


def test_the_summary_leaves_out_only_fixes_that_gain_nothing(real):
    from real_table import summary

    rows = [
        row(real, reached=1.0),
        row(real, layout="installed", culprit_right=False, named=False),
        row(real, "recbole-nais", pattern_right=None, culprit_right=None, gain=1.0, reached=1.0),
    ]
    assert summary(rows) == [
        "- checkout: pattern 1 of 1, culprit 1 of 1, culprit or one of the callers named with it 1 of 1.",
        "- installed: pattern 1 of 1, culprit 0 of 1, culprit or one of the callers named with it 1 of 1.",
        "- 1 of 2 fixes gain less than 10%.",
        "- `unstall optimize`: gain over the fix's, not capped, geometric mean of 1: 0.50. In 1 it kept nothing.",
    ]


def test_gains_that_were_timed_in_another_sitting_are_told(real):
    table = sys.modules["real_table"]
    rows = [row(real, version="2", timed=timed) for timed in ("1", "2", "")]
    rows[1].name = rows[2].name = "other"
    assert table.kept_gains(rows) == ["- What 1 of the fixes gain was timed in an earlier sitting than their verdicts."]
    assert not table.kept_gains(rows[1:])


def test_the_versions_that_searches_are_of_are_told(real):
    table = sys.modules["real_table"]
    rows = [row(real, searched=version) for version in ("2", "1", "2", "")]
    assert table.searches(rows) == ["- What `unstall optimize` reaches: 2 of version 2, 1 of version 1."]
    assert not table.searches(rows[3:])


def test_every_case_has_a_driver_and_a_page_cell(real):
    from real_table import markdown

    for one in real.CASES:
        assert (real.DRIVERS / one.driver).exists(), one.name
    page = markdown([row(real, one.name) for one in real.CASES])
    assert page.count("/commit/") == len(real.CASES)
