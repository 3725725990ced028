"""The two sides of a proof: patches, revisions, folders."""

from __future__ import annotations

import subprocess

import pytest

from unstall.prove.trees import TreeError, against, content_of, of_patch


def git(folder, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "program"
    (folder / "package").mkdir(parents=True)
    (folder / "train.py").write_text("a = 1\nb = 2\n")
    (folder / "package" / "old.py").write_text("old = 1\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def change(folder):
    (folder / "train.py").write_text("a = 1\nb = 3\n")
    (folder / "package" / "old.py").unlink()
    (folder / "package" / "new.py").write_text("new = 1\n")
    git(folder, "add", "-A")


def test_a_side_has_its_own_content_what_lies_there_or_nothing(tmp_path):
    path = tmp_path / "train.py"
    path.write_bytes(b"a = 1\n")
    assert content_of({path: b"a = 2\n"}, path) == b"a = 2\n"
    assert content_of({}, str(path)) == b"a = 1\n"
    with pytest.raises(FileNotFoundError, match=r"train\.py"):
        content_of({path: None}, path)


def test_a_patch_changes_adds_and_removes_files_and_leaves_the_tree_as_it_is(repository, tmp_path):
    change(repository)
    patch = tmp_path / "fix.patch"
    patch.write_text(git(repository, "diff", "--cached"))
    git(repository, "reset", "-q", "--hard")
    sides = of_patch(patch, repository / "package")
    assert dict(sides.original) == {}
    assert dict(sides.changed) == {
        repository / "train.py": b"a = 1\nb = 3\n",
        repository / "package" / "old.py": None,
        repository / "package" / "new.py": b"new = 1\n",
    }
    assert (repository / "train.py").read_text() == "a = 1\nb = 2\n"


def test_a_patch_applies_outside_of_a_repository(repository, tmp_path):
    change(repository)
    patch = tmp_path / "fix.patch"
    patch.write_text(git(repository, "diff", "--cached", "train.py"))
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "train.py").write_text("a = 1\nb = 2\n")
    assert dict(of_patch(patch, alone).changed) == {alone / "train.py": b"a = 1\nb = 3\n"}


def test_the_working_tree_against_a_revision(repository):
    change(repository)
    sides = against("HEAD", repository)
    assert dict(sides.changed) == {}
    assert dict(sides.original) == {
        repository / "train.py": b"a = 1\nb = 2\n",
        repository / "package" / "old.py": b"old = 1\n",
        repository / "package" / "new.py": None,
    }


def test_one_revision_against_another_whatever_the_tree_holds(repository):
    change(repository)
    git(repository, "commit", "-qm", "second")
    (repository / "train.py").write_text("other\n")
    sides = against("HEAD~1..HEAD", repository)
    before, after = next((b, a) for path, b, a in sides.differing if path.name == "train.py")
    assert (before, after) == (b"a = 1\nb = 2\n", b"a = 1\nb = 3\n")


def test_the_working_directory_against_a_folder(repository, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "train.py").write_text("a = 1\nb = 0\n")
    assert dict(against(str(other), repository).original) == {
        repository / "train.py": b"a = 1\nb = 0\n",
        repository / "package" / "old.py": None,
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not a patch\n", "git apply"),
        ("--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-x\n+y\n", "patch failed: train.py"),
    ],
)
def test_a_patch_that_does_not_apply_is_refused_in_a_line(repository, tmp_path, content, message):
    patch = tmp_path / "fix.patch"
    patch.write_text(content)
    with pytest.raises(TreeError, match=message):
        of_patch(patch, repository)


def test_an_unknown_revision_is_refused(repository):
    with pytest.raises(TreeError, match="no revision and no folder"):
        against("nowhere", repository)
