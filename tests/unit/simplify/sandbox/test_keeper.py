import os
import sys

from unstall.simplify.sandbox import place, vault

sys.modules.setdefault("vault", vault)
from unstall.simplify.sandbox import keeper  # noqa: E402  run as a script, it imports its neighbour by that name
from unstall.simplify.sandbox.keeping import Keeper  # noqa: E402


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


def test_places_have_room_and_differ(tmp_path):
    for home in place.homes(tmp_path):
        assert home.name.startswith(place.PREFIX) and (home / "notes").is_dir()
        keeper.remove(str(home))
