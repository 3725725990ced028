"""What a program leaves among the sandbox's notes reaches no later one."""

from __future__ import annotations

import socket

import pytest

from unstall.child.sandbox.refusals import note
from unstall.sandbox.sandbox import Sandbox


@pytest.fixture
def home(tmp_path):
    (tmp_path / "notes").mkdir()
    return tmp_path


def test_what_was_refused_is_told_and_the_rest_is_removed(home):
    box = Sandbox(home, home, None, None, None, "", [], True)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(home / "notes" / "relay"))
        note(str(home), "POST http://a/")
        (home / "notes" / "pid-12").touch()
        assert box.forget() == []
        (home / "notes" / "kept").mkdir()
        (home / "notes" / "refused-7.txt").write_text("PUT http://b/\n")
        assert box.forget() == ["kept"]
        assert [path.name for path in (home / "notes").iterdir()] == ["relay"]
    assert box.refused() == ["POST http://a/", "PUT http://b/"]
