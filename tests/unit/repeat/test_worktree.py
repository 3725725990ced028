"""The baseline's code beside the user's: the right revision, the user's data, and no trace afterwards."""

from __future__ import annotations

import os
import subprocess

import pytest

from unstall.repeat import revision
from unstall.repeat.worktree import WorktreeError, check_out


def _git(folder, *words):
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=folder, check=True, capture_output=True
    )


@pytest.fixture
def repository(tmp_path):
    top = tmp_path / "top"
    (top / "sub").mkdir(parents=True)
    (top / "sub" / "train.py").write_text("old")
    (top / ".gitignore").write_text("data/\n")
    _git(top, "init", "-q", "-b", "main")
    _git(top, "add", ".")
    _git(top, "commit", "-q", "-m", "one")
    (top / "sub" / "train.py").write_text("new")
    (top / "data").mkdir()
    (top / "data" / "x").write_text("data")
    (top / "sub" / "notes.txt").write_text("untracked")
    (top / ".unstall").mkdir()
    return top


def test_it_has_the_old_code_and_the_users_data(repository, tmp_path):
    into = tmp_path / "baseline"
    with check_out("main", repository / "sub", into) as tree:
        assert (into / "sub" / "train.py").read_text() == "old"
        assert (into / "data" / "x").read_text() == "data"
        assert (into / "sub" / "notes.txt").read_text() == "untracked"
        assert not (into / ".unstall").exists()
        assert tree.twin(repository / "sub") == into / "sub"
        assert tree.words(["train.py", str(repository / "sub/x.py"), "/etc/hosts"]) == [
            "train.py",
            str(into / "sub/x.py"),
            "/etc/hosts",
        ]
        path = f"{repository}/lib{os.pathsep}/usr/lib{os.pathsep}lib"
        assert tree.environment({"PYTHONPATH": path})["PYTHONPATH"].startswith(
            f"{into}/lib{os.pathsep}/usr/lib{os.pathsep}lib"
        )
    assert not into.exists()
    assert (repository / "data" / "x").exists()
    listed = subprocess.run(["git", "worktree", "list"], cwd=repository, capture_output=True, text=True).stdout
    assert len(listed.splitlines()) == 1


def test_what_both_sides_share_is_known(repository, tmp_path):
    (repository / "scratch.py").write_text("")
    (repository / "pack").mkdir()
    (repository / "pack" / "__init__.py").write_text("")
    with check_out("main", repository, tmp_path / "baseline") as tree:
        assert tree.shared_code == ["pack", "scratch.py"]
        assert tree.shares(repository / "pack" / "deep" / "one.py") and tree.shares(repository / "sub" / "notes.txt")
        assert not tree.shares(repository / "sub" / "train.py") and not tree.shares(tmp_path / "other.py")


def test_submodules_are_there(repository, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    _git(other, "init", "-q")
    (other / "__init__.py").write_text("")
    _git(other, "add", ".")
    _git(other, "commit", "-q", "-m", "one")
    _git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub/lib")
    _git(repository, "commit", "-q", "-a", "-m", "two")
    with check_out("main", repository, tmp_path / "baseline") as tree:
        assert (tree.path / "sub" / "lib" / "__init__.py").exists()
        assert tree.shared_code == ["sub/lib"]


def test_no_hook_of_the_repository_runs(repository, tmp_path):
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    with check_out("main", repository, tmp_path / "baseline"):
        pass
    assert not (tmp_path / "ran").exists()


def test_names_that_are_no_text_are_linked_too(repository, tmp_path):
    name = os.fsdecode(b"d\xff\xe9.bin")
    (repository / name).write_text("x")
    with check_out("main", repository, tmp_path / "baseline") as tree:
        assert (tree.path / name).read_text() == "x"


def test_it_is_removed_when_something_fails(repository, tmp_path):
    into = tmp_path / "baseline"
    with pytest.raises(RuntimeError), check_out("main", repository, into):
        raise RuntimeError
    assert not into.exists()


@pytest.mark.parametrize("name", ["nope", "--help", "", "main:sub"])
def test_no_such_revision_is_told(repository, tmp_path, name):
    with (
        pytest.raises(WorktreeError, match="no revision and no recorded run"),
        check_out(name, repository, tmp_path / "b"),
    ):
        pass


def test_no_repository_is_told(tmp_path):
    with pytest.raises(WorktreeError, match="not in a git repository"), check_out("main", tmp_path, tmp_path / "b"):
        pass


def test_the_revision_of_a_tree(repository, tmp_path):
    found = revision.of(repository)
    assert found.project == "top" and len(found.commit) == 40 and len(found.changes) == 12 and found.dirty
    _git(repository, "checkout", "-q", "--", ".")
    assert not revision.of(repository).dirty
    assert revision.of(tmp_path) == revision.Revision(project=tmp_path.name)


@pytest.mark.parametrize(
    "origin", ["https://joe:token@host.org/a/b.git", "git@host.org:a/b.git", "ssh://git@host.org/a/b"]
)
def test_a_project_is_named_by_its_origin_without_secrets(repository, origin):
    _git(repository, "remote", "add", "origin", origin)
    assert revision.of(repository).project == "host.org/a/b"


def test_what_lies_between_two_revisions(repository):
    first = revision.of(repository).commit
    _git(repository, "commit", "-q", "-a", "-m", "two")
    second = revision.of(repository).commit
    assert revision.between(repository, first, second) == "1 commit, 1 file changed, 1 insertion(+), 1 deletion(-)"
    for unknown in ("--help", "", first, "f" * 40):
        assert revision.between(repository, first, unknown) is None
