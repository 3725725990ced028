import os

import pytest

from unstall.sandbox import mounts
from unstall.sandbox.mountinfo import Mount
from unstall.sandbox.mounts import plan


def mount(path, kind="ext4", *options):
    return Mount(path, kind, frozenset(options or ("rw",)))


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
    found = plan(known, privileged=True).steps
    assert (found[0].action, found[0].path) == ("overlay", "/")
    assert steps(found, tree) == [("bind", "proc"), ("overlay", "var/lib/data"), ("readonly", "etc")]


def test_an_ordinary_users_tree_is_read_only_to_begin_with(tree):
    found = plan([mount("/")], privileged=False).steps
    assert (found[0].action, found[0].path) == ("readonly", "/")


def test_what_is_mounted_among_the_kernels_is_read_only(tree):
    """As the tmpfs that holds the cgroups of version 1; what of the kernel's is below is as it is again."""
    known = [
        mount("/"),
        mount(f"{tree}/proc", "proc"),
        mount(f"{tree}/var/lib", "sysfs"),
        mount(f"{tree}/var/lib/data", "tmpfs"),
    ]
    (tree / "var/lib/data/cpu").mkdir()
    known.append(mount(f"{tree}/var/lib/data/cpu", "cgroup"))
    found = plan(known, privileged=True).steps
    assert steps(found, tree) == [
        ("bind", "proc"),
        ("bind", "var/lib"),
        ("readonly", "var/lib/data"),
        ("bind", "var/lib/data/cpu"),
    ]


@pytest.mark.parametrize("privileged", [False, True])
def test_homes_that_are_mounted_on_demand(tree, privileged):
    """A folder that mounts what is asked for is not listed, and what it has mounted is no kernel's."""
    known = [mount(f"{tree}/home", "autofs"), mount(f"{tree}/home/me", "nfs4")]
    layout = mounts._Layout(known, privileged)
    layout.cover(known[0])
    assert steps(layout.plan.steps, tree) == [("readonly", "home"), ("overlay", "home/me")]
    assert layout.plan.readonly == {f"{tree}/home": []}


def test_a_folder_of_too_many_entries(tree):
    """It stays read-only but for what is known: what is mounted there, and what programs write to."""
    for name in ("mounted", "written/within", "mounted/within", "holds/mounted"):
        (tree / "home" / name).mkdir(parents=True)
    known = [mount(f"{tree}/home/mounted"), mount(f"{tree}/home/holds/mounted")]
    reach = [f"{tree}/home/{name}" for name in ("written/within", "written", "mounted/within", "holds")]
    layout = mounts._Layout(known, False, reach, most_entries=1)
    layout.cover_tree(f"{tree}/home")
    assert steps(layout.plan.steps, tree) == [
        ("overlay", "home/written"),
        ("memory", "home/holds"),
        ("overlay", "home/holds/mounted"),
        ("overlay", "home/mounted"),
    ]
    assert layout.plan.readonly == {f"{tree}/home": [f"{tree}/home/written", f"{tree}/home/holds"]}


def test_a_tree_with_locked_mounts_is_laid_out_by_its_parts(tree):
    """An ordinary user's overlay cannot be above a tree with mounts in it; a folder he can write to is made anew."""
    (tree / "var/notes").write_text("a file beside the mount")
    (tree / "var/link").symlink_to("notes")
    layout = mounts._Layout([mount(f"{tree}/var/lib/data"), mount(f"{tree}/proc", "proc")], False)
    layout.cover_tree(f"{tree}/var")
    assert steps(layout.plan.steps, tree) == [
        ("memory", "var"),
        ("readonly", "var/lib"),
        ("memory", "var/lib"),
        ("overlay", "var/lib/data"),
        ("link", "var/link"),
        ("readonly", "var/notes"),
    ]


def test_a_mounted_file_is_read_only(tree):
    (tree / "etc/hosts").write_text("hosts")
    found = plan([mount("/"), mount(f"{tree}/etc/hosts")], privileged=True).steps
    assert steps(found, tree) == [("readonly", "etc/hosts")]


def test_what_a_mount_forbids_is_forbidden_above_it(tree):
    found = plan([mount("/"), mount(f"{tree}/home", "ext4", "rw", "nosuid", "noexec", "nodev")], privileged=True).steps
    assert found[1].detail == "noexec,nosuid"


@pytest.mark.parametrize("privileged", [False, True])
def test_devices_work_and_what_is_made_beside_them_stays_inside(tree, privileged):
    for name in ("dev/pts", "dev/hugepages"):
        (tree / name).mkdir()
    known = [mount("/"), mount(f"{tree}/dev", "devtmpfs", "rw", "nosuid"), mount(f"{tree}/dev/pts", "devpts")]
    known += [mount(f"{tree}/dev/hugepages", "hugetlbfs"), mount(f"{tree}/dev/shm", "tmpfs")]
    layout = mounts._Layout(known, privileged, devices=f"{tree}/dev")
    layout.cover_devices()
    assert steps(layout.plan.steps, tree) == [
        ("overlay" if privileged else "readonly", "dev"),
        ("bind", "dev/pts"),
        ("readonly", "dev/hugepages"),
        ("readonly", "dev/shm"),
        ("shm", "dev/shm"),
    ]
    assert layout.plan.steps[0].detail == ("nosuid" if privileged else "")
