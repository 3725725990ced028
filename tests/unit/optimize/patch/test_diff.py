"""What git makes of the patch."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unstall.optimize.patch.apply import apply, changed_since_commit
from unstall.optimize.patch.diff import one_file, quoted, unified
from unstall.optimize.source.errors import SourceError
from unstall.optimize.source.files import Sources


def git(folder, *words, stdin=None):
    return subprocess.run(["git", "-C", str(folder), *words], input=stdin, capture_output=True, check=True).stdout


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "core.autocrlf", "false")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.py", b"x = 1\ny = 2\n"),
        ("sub/no newline.py", b"x = 1\ny = 2"),
        ("crlf.py", b"x = 1\r\ny = 2\r\n# end\r\n"),
        ("latin.py", b"# -*- coding: latin-1 -*-\nx = 1\ns = '\xe9'\n"),
        ("bom.py", b"\xef\xbb\xbfx = 1\ny = 2\n"),
        ("t\xe4b.py", b"if 1:\n\tx = 1\n"),
        ('q"uote.py', b"x = 1\n"),
    ],
)
def test_git_applies_it_and_nothing_else_changes(repository, name, content):
    path = repository / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    module = Sources().module(path).tree
    changed = module.with_changes(body=[*module.body, module.body[-1]])
    sources = Sources().with_module(path, changed)
    patch = unified(sources, lambda path: repository)
    git(repository, "apply", "-", stdin=patch)
    assert path.read_bytes() == sources.bytes_of(path)
    assert content.count(b"\r\n") == 0 or b"\n" not in path.read_bytes().replace(b"\r\n", b"")
    assert path.read_bytes().startswith(content[:12].rstrip(b"\r\n"))


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60), st.binary(max_size=60))
def test_the_diff_of_equal_files_is_empty_and_its_lines_are_marked(old, new):
    made = one_file(old, new, "a.py")
    assert (made == b"") == (old == new)
    assert made == b"" or made.startswith(b"--- a/a.py\n+++ b/a.py\n@@")


def test_unusual_names_are_quoted_as_git_does():
    assert quoted("a/x.py") == b"a/x.py"
    assert quoted("a/ü.py") == b'"a/\\303\\274.py"'


def test_application_keeps_a_backup_and_the_mode(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("x = 1\n")
    path.chmod(0o755)
    (tmp_path / "train.py.orig").write_text("older")
    sources = Sources({path: b"x = 2\n"})
    assert apply(sources) == [(path, tmp_path / "train.py.orig1")]
    assert path.read_text() == "x = 2\n" and (tmp_path / "train.py.orig1").read_text() == "x = 1\n"
    assert path.stat().st_mode & 0o777 == 0o755 and (tmp_path / "train.py.orig").read_text() == "older"


def test_uncommitted_changes_are_seen(repository):
    path = repository / "x.py"
    path.write_text("x = 1\n")
    assert changed_since_commit(repository, [path]) == [path]


def test_what_is_not_python_is_refused_in_one_line(tmp_path):
    path = tmp_path / "cells.py"
    path.write_text("%matplotlib inline\nx = 1\n")
    with pytest.raises(SourceError, match=r"cells\.py"):
        Sources().module(path)
    good = tmp_path / "good.py"
    good.write_text("x = 1\n")
    assert Sources().bytes_of(good) == b"x = 1\n"
