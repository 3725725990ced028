"""The board between the parent and the program's processes."""

import pytest

from unstall.child.experiments.switchboard import Switchboard


def test_what_the_parent_writes_the_child_reads(tmp_path):
    parent = Switchboard(tmp_path, create=True)
    child = Switchboard(tmp_path)
    assert child.read() == (0, {})
    assert parent.write({"interventions": [{"kind": "cached"}]}) == 1
    assert child.read() == (1, {"interventions": [{"kind": "cached"}]})
    assert parent.in_force[0] == 0
    child.applied(1)
    assert parent.in_force[0] == 1
    child.count_real_call()
    assert parent.real_calls == 1


def test_the_newest_condition_is_read_however_long_it_is(tmp_path):
    parent = Switchboard(tmp_path, create=True)
    parent.write({"interventions": [{"name": "x" * 70_000}]})
    assert len(Switchboard(tmp_path).read()[1]["interventions"][0]["name"]) == 70_000
    parent.write({})
    assert Switchboard(tmp_path).read() == (2, {})


def test_no_board(tmp_path):
    with pytest.raises(OSError):
        Switchboard(tmp_path)
