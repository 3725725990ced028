import os
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unstall.child.sandbox import vault

NAMES = ("a", "b", "c")
PATHS = [*NAMES, *(f"{folder}/{name}" for folder in NAMES for name in NAMES)]


def real(root, path):
    """A path by where its folder really is, as the guard names it."""
    folder, name = os.path.split(os.path.join(root, path))
    return os.path.join(os.path.realpath(folder), name)


def change(root, number, action, path):
    """One change as a program would make it, saved before; one that cannot be made is not."""
    full = real(root, path)
    for changed in (full, os.path.realpath(full)):  # as the guard does: a change may go through a link
        vault.save(f"{root}.vault", changed)
    try:
        if action == "write":
            with open(full, "w") as file:
                file.write(f"new {number}")
        elif action == "remove":
            shutil.rmtree(full) if os.path.isdir(full) and not os.path.islink(full) else os.unlink(full)
        elif action == "folder":
            os.mkdir(full)
        elif action == "link":
            os.symlink("a", full)
        elif action == "mode":
            os.chmod(full, 0o700)
        elif action == "rename":
            target = real(root, PATHS[number % len(PATHS)])
            vault.save(f"{root}.vault", target)
            os.rename(full, target)
    except OSError:
        pass


def state(root):
    found = {}
    for folder, folders, files in os.walk(root):
        for path in [folder, *(os.path.join(folder, name) for name in folders + files)]:
            facts = os.lstat(path)
            content = os.readlink(path) if os.path.islink(path) else ""
            if not content and not os.path.isdir(path):
                with open(path) as file:
                    content = file.read()
            found[os.path.relpath(path, root)] = facts.st_mode, facts.st_mtime_ns, content
    return found


ACTIONS = st.tuples(st.sampled_from(["write", "remove", "folder", "link", "mode", "rename"]), st.sampled_from(PATHS))


@settings(max_examples=60, deadline=None)
@given(st.lists(ACTIONS, max_size=12))
def test_whatever_was_saved_before_is_put_back(tmp_path_factory, actions):
    root = str(tmp_path_factory.mktemp("tree") / "root")
    os.makedirs(f"{root}/b/c")
    for path in ("a", "b/a", "b/c/x"):
        with open(f"{root}/{path}", "w") as file:
            file.write(f"the content of {path}")
    os.symlink("b", f"{root}/c")
    for folder, _, files in os.walk(root, topdown=False):
        for path in [*(os.path.join(folder, name) for name in files), folder]:
            os.utime(path, ns=(10**18, 10**18 + 7))
    before = state(root)
    for number, (action, path) in enumerate(actions):
        change(root, number, action, path)
    vault.restore(f"{root}.vault")
    assert state(root) == before
    assert not os.path.exists(f"{root}.vault")


def test_the_first_to_save_wins(tmp_path):
    path, kept = tmp_path / "file", str(tmp_path / "vault")
    path.write_text("first")
    vault.save(kept, str(path))
    path.write_text("second")
    vault.save(kept, str(path))
    vault.restore(kept)
    assert path.read_text() == "first"


def test_what_cannot_be_put_back_is_named(tmp_path, monkeypatch):
    path, kept = tmp_path / "file", str(tmp_path / "vault")
    path.write_text("first")
    vault.save(kept, str(path))
    path.unlink()
    monkeypatch.setattr(shutil, "copyfile", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="file: No space left"):
        vault.restore(kept)
