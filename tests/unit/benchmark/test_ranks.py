"""Which processes are ranks, whatever started them, and what each communicates in which group."""

from __future__ import annotations

import pytest
from spanfactory import Recording

from unstall.benchmark.measure import measure
from unstall.records.observations import Observation

GROUP = 1 << 48


def rank(number, *, pid=None, parent=50, launcher=None, joined=2, steps=40, comm=(), host="node"):
    """A training process. ``joined``: the world of its process group, if any; ``launcher``: its variables' facts."""
    r = Recording(pid=pid or 100 + number, parent=parent)
    r.emit_fact("process", pid=r.pid, parent=parent, host=host, **(launcher or {}))
    if joined:
        r.emit_fact("rank", rank=number, world_size=joined, host="node")
    for _ in range(steps):
        with r.span("~forward"):
            r.spend(0.02)
            for name, seconds, arg in comm:
                r.do(name, seconds, arg=arg)
        r.do("~backward", 0.02)
        r.do("~optimizer", 0.01)
    return r


def measurement(*recordings):
    return measure([r.process() for r in recordings], Observation(999.0, 1100.0)).measurement


def test_a_process_group_says_who_is_who_without_any_variables():
    m = measurement(rank(1), rank(0))
    assert (m.world_size, m.main_pid, [r.rank for r in m.ranks], m.unseen_ranks) == (2, 100, [0, 1], ())
    assert [r.host for r in m.ranks] == ["node", "node"]


def test_a_rank_that_another_rank_started_is_no_worker():
    m = measurement(rank(0), rank(1, parent=100))
    assert [r.rank for r in m.ranks] == [0, 1]


def test_what_a_rank_starts_inherits_its_variables_and_is_a_helper():
    variables = {"rank": 0, "world_size": 1, "launcher": "torchrun"}
    helper = rank(0, pid=300, parent=100, launcher=variables, joined=None, steps=200)
    m = measurement(rank(0, launcher=variables, joined=None), helper)
    assert (m.main_pid, m.ranks) == (100, [])


def alone(pid, parent, steps):
    return rank(0, pid=pid, parent=parent, joined=None, steps=steps)


def test_of_a_search_in_a_pool_it_is_the_pool_that_is_measured():
    """Two processes that train, and what started them fits the winner once more."""
    search = alone(100, 50, steps=10)
    m = measurement(search, alone(201, 100, steps=200), alone(202, 100, steps=180))
    assert (m.main_pid, m.computing, m.ranks) == (201, 2, [])
    assert m.total_steps == 199


def test_a_process_that_trains_less_than_what_started_it_is_a_helper():
    m = measurement(alone(100, 50, steps=200), alone(201, 100, steps=40))
    assert (m.main_pid, m.computing) == (100, 1)


def test_what_computes_on_another_machine_takes_no_core_of_this_one():
    assert measurement(rank(0), rank(1)).computing == 2
    assert measurement(rank(0), rank(1, host="another")).computing == 1


def test_the_group_knows_better_than_the_launcher():
    variables = {"rank": 5, "world_size": 8, "launcher": "Slurm"}
    m = measurement(rank(0, launcher=variables), rank(1, launcher=variables))
    assert (m.world_size, [r.rank for r in m.ranks]) == (2, [0, 1])


def test_ranks_on_other_nodes_are_missed():
    m = measurement(rank(2, joined=4), rank(3, joined=4))
    assert ([r.rank for r in m.ranks], m.unseen_ranks, m.has_peers) == ([2, 3], (0, 1), True)
    alone = measurement(rank(0, joined=4))
    assert ([r.rank for r in alone.ranks], alone.unseen_ranks, alone.has_peers) == ([0], (1, 2, 3), True)


def test_processes_that_made_no_group_do_not_wait_for_each_other():
    m = measurement(rank(0, launcher={"rank": 0, "world_size": 4, "launcher": "Slurm"}, joined=None))
    assert (m.world_size, m.unseen_ranks, m.has_peers) == (4, (), False)


def test_a_world_of_one_is_none():
    m = measurement(rank(0, joined=1))
    assert (m.world_size, m.ranks, m.has_peers) == (1, [], False)


def test_of_a_rank_that_was_started_again_the_longer_life_counts():
    m = measurement(rank(0), rank(1, pid=101, steps=5), rank(1, pid=102, steps=40))
    assert [r.pid for r in m.ranks] == [100, 102]


def test_collectives_are_counted_by_their_group():
    comm = [
        ("~comm.all_gather", 0.003, GROUP | 1000),
        ("~comm.all_gather", 0.001, GROUP | 500),
        ("~comm.wait", 0.002, GROUP),
        ("~comm.all_reduce", 0.004, 2 * GROUP | 64),
        ("~comm.functional", 0.001, 8),
    ]
    r = rank(0, comm=comm)
    r.emit_fact("group", number=1, name="0", description="default_pg", ranks=[0, 1], device="cpu")
    r.emit_fact("group", number=2, name="7", description="mesh_tp", ranks=[0], device="cpu")
    m = measurement(r, rank(1))
    default, tensor, functional = sorted(m.ranks[0].groups, key=lambda group: -group.wait_s)
    assert (default.name, default.ranks, default.device) == ("default", (0, 1), "cpu")
    assert (default.calls, default.bytes, default.wait_s) == pytest.approx((2, 1500, 0.006))
    assert (tensor.name, tensor.calls, tensor.bytes, tensor.wait_s) == ("tp", 1, 64, pytest.approx(0.004))
    assert (functional.name, functional.bytes) == ("DTensor", 8)
    assert m.phase("forward").mean_s == pytest.approx(0.02)
    assert m.phase("comm").mean_s == pytest.approx(0.011)


@pytest.mark.parametrize("description, name", [("", "7"), ("undefined", "7"), ("experts", "experts")])
def test_a_group_is_called_as_its_maker_described_it(description, name):
    r = rank(0, comm=[("~comm.all_reduce", 0.004, GROUP | 64)])
    r.emit_fact("group", number=1, name="7", description=description, ranks=[0, 1], device="cpu")
    (group,) = measurement(r, rank(1)).ranks[0].groups
    assert group.name == name


def test_backward_is_not_blocked_by_the_collectives_inside_it():
    r = rank(0, steps=0)
    for _ in range(40):
        with r.span("~backward", cpu=0.01):  # 30 ms of it off the core
            r.spend(0.01)
            r.do("~comm.reduce_scatter", 0.03, cpu=0.0, arg=GROUP)
        r.do("~optimizer", 0.01)
    m = measurement(r, rank(1))
    assert m.ranks[0].blocked["backward"] == pytest.approx(0, abs=1e-4)
    assert m.ranks[0].blocked["comm"] == pytest.approx(0.03)
