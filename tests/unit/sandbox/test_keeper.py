import itertools
import os
import sys

from unstall.child.sandbox import vault
from unstall.sandbox import scratch_dir
from unstall.sandbox.thresholds import RESERVE_BYTES

sys.modules.setdefault("vault", vault)
from unstall.sandbox import keeper  # noqa: E402  run as a script, it imports its neighbour by that name
from unstall.sandbox.keeper_client import Keeper  # noqa: E402


def test_a_tree_that_nobody_may_enter_is_removed(tmp_path):
    inner = tmp_path / "tree" / "work" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    (tmp_path / "tree" / "link").symlink_to(tmp_path)
    os.chmod(inner, 0)
    os.chmod(inner.parent, 0)
    keeper.remove(str(tmp_path / "tree"))
    assert os.listdir(tmp_path) == []


def test_a_closed_keeper_leaves_no_home(tmp_path):
    home = tmp_path / "home"
    (home / "notes").mkdir(parents=True)
    kept = Keeper(home)
    kept.tidy(wait=True)
    assert kept.close() == ""
    assert not home.exists()
    assert kept.close() == ""


def test_a_namespace_whose_number_was_given_to_another_is_left_alone(tmp_path):
    layer = tmp_path / "home" / "layer-old"
    layer.mkdir(parents=True)
    (layer / "namespace").write_text(os.readlink("/proc/self/ns/mnt"))
    home = keeper.Home(str(tmp_path / "home"))
    assert os.getpid() in keeper.namespaces()[home.namespace("layer-old")]
    assert home.inside() == set()


def test_a_folder_beside_the_programs_is_the_last_resort_of_its_device(tmp_path):
    """However the room changes while one looks: what is freed meanwhile makes no folder the better one."""
    preferred, beside = tmp_path / "temporary", tmp_path / "beside"
    preferred.mkdir()
    beside.mkdir()
    room = itertools.count(4 * RESERVE_BYTES)
    homes = scratch_dir.homes([preferred, beside], room=lambda path: next(room))
    assert [home.parent for home in homes] == [preferred.resolve()]


def test_places_have_room_and_differ(tmp_path):
    for home in scratch_dir.homes(scratch_dir.roots(tmp_path)):
        assert home.name.startswith(scratch_dir.PREFIX) and (home / "notes").is_dir()
        keeper.remove(str(home))
