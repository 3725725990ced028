import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.sandbox import mounts
from unstall.sandbox.mounts import Mount, mount_of, parse, plan, read_mounts


def mount(path, kind="ext4", *options):
    return Mount(path, kind, frozenset(options or ("rw",)))


def test_a_line_is_read():
    line = "36 35 98:0 /mnt1 /a\\040b rw,nosuid master:1 - ext3 /dev/root ro,errors=continue"
    assert parse(line) == Mount("/a b", "ext3", frozenset({"rw", "nosuid", "ro", "errors=continue"}))
    assert parse(line).readonly


@given(st.text())
def test_any_other_line_is_passed_over_or_read(line):
    parsed = parse(line)
    assert parsed is None or isinstance(parsed.path, str)


def test_the_last_mount_at_a_path_is_the_one_seen(tmp_path):
    table = tmp_path / "mountinfo"
    table.write_text("2 1 0:1 / /b rw - tmpfs t rw\n1 1 0:1 / / rw - ext4 d rw\n3 1 0:1 / /b rw - xfs d rw\nnonsense\n")
    assert [(found.path, found.kind) for found in read_mounts(table)] == [("/", "ext4"), ("/b", "xfs")]
    assert read_mounts(tmp_path / "none") == []


def test_the_mount_that_holds_a_path():
    known = [mount("/"), mount("/home"), mount("/home/me/data")]
    assert mount_of("/home/me", known).path == "/home"
    assert mount_of("/homer", known).path == "/"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A small tree in the place of the machine's: paths in the plan are relative to it."""
    for name in ("proc", "dev/shm", "home/me", "var/lib/data", "etc", "tmp"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def steps(found, root):
    return [(step.action, os.path.relpath(step.path, root)) for step in found if step.path.startswith(str(root))]


def test_root_lays_one_overlay_for_each_mount(tree):
    known = [
        mount("/"),
        mount(f"{tree}/proc", "proc"),
        mount(f"{tree}/var/lib/data"),
        mount(f"{tree}/etc", "ext4", "ro"),
    ]
    found = plan(known, privileged=True)
    assert (found[0].action, found[0].path) == ("overlay", "/")
    assert steps(found, tree) == [("bind", "proc"), ("overlay", "var/lib/data"), ("bind", "etc")]


def test_a_tree_with_locked_mounts_is_laid_out_by_its_parts(tree):
    """An ordinary user's overlay cannot be above a tree with mounts in it; a folder he can write to is made anew."""
    (tree / "var/notes").write_text("a file beside the mount")
    (tree / "var/link").symlink_to("notes")
    layout = mounts._Layout([mount(f"{tree}/var/lib/data"), mount(f"{tree}/proc", "proc")], False)
    layout.cover_tree(f"{tree}/var")
    assert steps(layout.steps, tree) == [
        ("memory", "var"),
        ("bind", "var/lib"),
        ("memory", "var/lib"),
        ("overlay", "var/lib/data"),
        ("link", "var/link"),
        ("readonly", "var/notes"),
    ]


def test_a_mounted_file_is_read_only(tree):
    (tree / "etc/hosts").write_text("hosts")
    found = plan([mount("/"), mount(f"{tree}/etc/hosts")], privileged=True)
    assert steps(found, tree) == [("readonly", "etc/hosts")]


def test_what_a_mount_forbids_is_forbidden_above_it(tree):
    found = plan([mount("/"), mount(f"{tree}/home", "ext4", "rw", "nosuid", "noexec", "nodev")], privileged=True)
    assert found[1].detail == "noexec,nosuid"
