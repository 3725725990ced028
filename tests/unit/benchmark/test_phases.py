"""What of a step belongs to which phase, to the network, and to no core at all."""

from __future__ import annotations

import numpy as np
import pytest
from spanfactory import Recording, check_loop, loop_of, mean, train, train_step

from unstall.benchmark import phases
from unstall.benchmark.boundaries import primary
from unstall.benchmark.steps import find_loop, main_spans
from unstall.child.layout import MODULE, NETWORK, NOGRAD
from unstall.records.vocabulary import PHASE_NAMES

# ---------------------------------------------------------------- what belongs where


def test_a_model_inside_the_wait_for_data_is_data_wait_and_no_step():
    """A dataset whose transform runs a network."""
    r = Recording()
    for _ in range(6):
        with r.span("~data.next"), r.span("~data.fetch"):
            for _ in range(3):
                r.do("~forward", 0.01, arg=55)
        r.do("~forward", 0.02, arg=1, flags=NOGRAD)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("batch", 5)
    assert mean(loop, "data_wait") == pytest.approx(0.03)
    assert mean(loop, "forward") == pytest.approx(0.02)


def test_submodule_calls_change_nothing_but_where_time_is_known():
    plain, deep = Recording(), Recording()
    for r, inner in [(plain, False), (deep, True)]:
        for _ in range(5):
            r.do("~data.next", 0.01)
            with r.span("~forward"):
                if inner:
                    r.do("~forward", 0.02, flags=MODULE, arg=77)
                else:
                    r.spend(0.02)
            r.do("~backward", 0.01)
            r.do("~optimizer", 0.01)
    np.testing.assert_allclose(loop_of(plain).phases, loop_of(deep).phases, atol=1e-9)


def test_a_garbage_collection_counts_where_it_happens():
    r = Recording()
    for _ in range(4):
        r.do("~data.next", 0.01)
        with r.span("~forward"):
            r.spend(0.02)
            r.do("~gc", 0.05)
        r.do("~gc", 0.03)
        r.do("~backward", 0.01)
        r.do("~optimizer", 0.01)
    loop = loop_of(r)
    check_loop(loop)
    assert mean(loop, "forward") == pytest.approx(0.07)
    assert mean(loop, "other") == pytest.approx(0.03)


def test_time_on_no_core_is_blocked_where_it_is_known():
    r = Recording()
    for _ in range(4):
        r.do("~data.next", 0.10, cpu=0.02, delay=0.03)
        r.do("~forward", 0.02)
        r.do("~backward", 0.02, cpu=0.02)
        r.do("~optimizer", 0.01)
    loop = loop_of(r)
    check_loop(loop)
    assert loop.blocked[:, PHASE_NAMES.index("data_wait")] == pytest.approx(0.05)
    assert loop.blocked[:, PHASE_NAMES.index("forward")] == pytest.approx(0)
    assert loop.blocked[:, PHASE_NAMES.index("backward")] == pytest.approx(0, abs=1e-6)


def test_time_on_a_core_is_that_of_the_calls_of_which_it_is_known():
    r = Recording()
    for step in range(4):
        r.do("~data.next", 0.10, cpu=0.02, delay=0.03)
        r.do("~forward", 0.02, cpu=0.01 if step % 2 else None)
        r.do("~backward", 0.02)
        r.do("~optimizer", 0.01)
    cpu = loop_of(r).cpu
    assert cpu[:, PHASE_NAMES.index("data_wait")] == pytest.approx(0.02)
    assert cpu[:, PHASE_NAMES.index("forward")] == pytest.approx(0.01)
    assert np.isnan(cpu[:, PHASE_NAMES.index("backward")]).all()


def test_network_time_and_bytes_belong_to_the_phase_they_happen_in():
    r = Recording()
    for _ in range(4):
        with r.span("~data.next"):
            r.spend(0.01)
            r.do("~net.recv", 0.04, flags=NETWORK, arg=1000)
        r.do("~net.send", 0.005, flags=NETWORK, arg=10)
        r.do("~forward", 0.02)
        r.do("~backward", 0.02)
        r.do("~optimizer", 0.01)
    loop = loop_of(r)
    check_loop(loop)
    wait, other = PHASE_NAMES.index("data_wait"), PHASE_NAMES.index("other")
    assert loop.network[:, wait] == pytest.approx(0.04)
    assert loop.network_bytes[:, wait] == pytest.approx(1000)
    assert loop.network[:, other] == pytest.approx(0.005)
    assert loop.network_bytes[:, other] == pytest.approx(10)
    assert mean(loop, "data_wait") == pytest.approx(0.05)


@pytest.mark.parametrize("moved, seconds", [(0, 0.0), (500, 0.04)])
def test_an_event_loops_wait_is_network_only_where_bytes_moved(moved, seconds):
    r = Recording()
    for _ in range(4):
        with r.span("~data.next"):
            r.do("~net.select", 0.04)
            if moved:
                r.do("~net.recv", 0.0, flags=NETWORK, arg=moved)
        r.do("~forward", 0.02)
        r.do("~backward", 0.02)
        r.do("~optimizer", 0.01)
    assert loop_of(r).network[:, PHASE_NAMES.index("data_wait")] == pytest.approx(seconds)


def test_a_span_longer_than_its_step_cannot_make_more_than_the_step():
    """A loop inside one outer call that some seam knows."""
    r = Recording()
    with r.span("~callback.torch.save"):
        for _ in range(5):
            train_step(r)
            r.spend(0.01)
    check_loop(loop_of(r))


# ---------------------------------------------------------------- threads and subjects


def test_the_loop_is_looked_for_on_the_main_thread():
    r = Recording()
    train(r, 4)
    r.flags, r.thread = 0, 999
    train(r, 10)
    assert len(loop_of(r)) == 4


def test_a_loop_on_another_thread_is_found_where_the_main_one_has_none():
    r = Recording()
    r.do("mine", 0.1)
    r.flags = 0
    for thread, steps in [(501, 3), (502, 10)]:
        r.thread = thread
        train(r, steps)
    process = r.process()
    assert set(main_spans(process)["thread"].tolist()) == {502}
    assert len(find_loop(process)) == 10


def test_the_primary_subject_is_the_one_that_takes_the_time_among_those_called_often():
    r = Recording()
    for _ in range(10):
        r.do("~forward", 0.01, arg=1)
        r.do("~forward", 0.03, arg=2)
    r.do("~forward", 5.0, arg=3)  # once, however long
    process = r.process()
    assert set(primary(process.named("~forward"))["arg"].tolist()) == {2}
    assert len(primary(process.named("no such"))) == 0


def test_unhindered_seconds_are_those_of_the_quickest_steps():
    """In most steps a thread of the team waits for a core; every fifth has all it needs."""
    r = Recording()
    for number in range(60):
        train_step(r, forward=0.002 if number % 5 == 0 else 0.03)
    loop = loop_of(r)
    assert phases.unhindered(loop, ~loop.at_boundary)["forward"] == pytest.approx(0.002, rel=0.05)
    assert mean(loop, "forward") > 0.02


def test_a_phase_of_few_steps_counts_as_often_as_it_comes():
    r = Recording()
    for number in range(60):
        train_step(r)
        if number % 4 == 0:
            r.do("~callback.save", 0.04)
    loop = loop_of(r)
    assert phases.unhindered(loop, ~loop.at_boundary)["callback"] == pytest.approx(0.01, rel=0.1)
