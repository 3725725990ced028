"""Each intervention, switched on and off in this process."""

import itertools
import time
import urllib.request
from types import SimpleNamespace

import pytest
import torch

from unstall.simplify import replay, seams
from unstall.simplify.engine import Engine
from unstall.simplify.interventions.base import key_of
from unstall.simplify.switchboard import Switchboard


def slow(x):
    time.sleep(0.01)
    return x * 2


def fill(box):
    box.append(1)


def count():
    yield 1


class Model:
    """What the tests of backward and the optimizer work on."""

    def __init__(self):
        self.layer = torch.nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.layer.parameters(), lr=0.1)

    def step(self):
        self.optimizer.zero_grad()
        self.layer(torch.ones(2, 4)).sum().backward()
        self.optimizer.step()
        return self.layer.weight.detach().clone()


@pytest.fixture(autouse=True)
def three_calls_teach_enough(monkeypatch):
    monkeypatch.setattr(replay, "_COLLECTING_S", 0.0)


@pytest.fixture
def told():
    return []


@pytest.fixture
def engine(tmp_path, told):
    """An engine of this process, with no condition left in force after the test."""
    Switchboard(tmp_path, create=True)
    child = SimpleNamespace(directory=str(tmp_path), options={}, tell=lambda kind, **facts: told.append((kind, facts)))
    made = Engine(child)
    yield made
    made.put_in_force(0, {})


def problems(told):
    return [facts["text"] for _, facts in told if facts.get("what") == "problem"]


def test_a_stub_learns_and_then_answers(engine, told):
    engine.put_in_force(1, {"interventions": [{"kind": "stub", "name": "slow", "file": __file__}]})
    answers = [slow(i) for i in range(8)]
    assert answers[:3] == [0, 2, 4]
    assert set(answers[3:]) <= {0, 2, 4}
    assert engine.board.real_calls == 3
    engine.put_in_force(2, {})
    assert slow(21) == 42
    assert problems(told) == []


def test_two_on_one_function_do_not_undo_each_other(engine):
    stub = {"kind": "stub", "name": "slow", "file": __file__}
    delay = {"kind": "delay", "name": "slow", "file": __file__, "share": 0.1, "by": "sleep"}
    engine.put_in_force(1, {"interventions": [delay]})
    engine.put_in_force(2, {"interventions": [stub]})

    def call(x):
        return slow(x)

    assert [call(i) for i in range(3)] == [0, 2, 4]
    engine.put_in_force(3, {"interventions": [stub, delay]})
    engine.put_in_force(4, {"interventions": [stub]})
    assert call(21) in (0, 2, 4), "the stub is in force still"
    engine.put_in_force(5, {})
    assert call(21) == 42


@pytest.mark.parametrize(
    ("name", "call", "why"), [("fill", lambda: fill([]), "argument box"), ("count", count, "generator")]
)
def test_what_cannot_be_stubbed_is_told_and_goes_on_as_it_was(engine, told, name, call, why):
    engine.put_in_force(1, {"interventions": [{"kind": "stub", "name": name, "file": __file__}]})
    for _ in range(5):
        call()
    box = []
    fill(box)
    assert box == [1]
    assert list(count()) == [1]
    assert why in problems(told)[0]


def test_a_delay_adds_its_share_and_changes_no_result(engine):
    specification = {"kind": "delay", "name": "slow", "file": __file__, "share": 2.0, "by": "sleep"}
    engine.put_in_force(1, {"interventions": [specification]})
    began = time.perf_counter()
    assert slow(3) == 6
    assert time.perf_counter() - began >= 0.03


def test_asleep_takes_its_time(engine):
    engine.put_in_force(1, {"interventions": [{"kind": "sleep", "name": "slow", "file": __file__}]})
    answers = []
    for i in range(4):
        began = time.perf_counter()
        answers.append(slow(i))
    assert answers[3] in answers[:3]
    assert time.perf_counter() - began >= 0.009


def test_without_the_optimizer_nothing_is_learned(engine):
    model = Model()
    before = model.step()
    engine.put_in_force(1, {"interventions": [{"kind": "optimizer", "name": "optimizer"}]})
    assert torch.equal(model.step(), before)
    engine.put_in_force(2, {})
    assert not torch.equal(model.step(), before)


def test_a_closure_is_called_all_the_same(engine):
    model = Model()
    optimizer = torch.optim.LBFGS(model.layer.parameters())
    engine.put_in_force(1, {"interventions": [{"kind": "optimizer", "name": "optimizer"}]})
    assert optimizer.step(lambda: torch.tensor(7.0)) == 7


def test_without_backward_the_optimizer_still_has_gradients(engine):
    model = Model()
    engine.put_in_force(1, {"interventions": [{"kind": "backward", "name": "backward"}]})
    weights = [model.step() for _ in range(5)]
    assert all(not torch.equal(a, b) for a, b in itertools.pairwise(weights))
    assert engine.board.real_calls == 2


def test_requests_are_answered_from_the_record(engine):
    engine.put_in_force(1, {"interventions": [{"kind": "network", "name": "network"}]})
    bodies = []
    for i in range(6):
        with urllib.request.urlopen(f"data:text/plain,number{i}") as response:
            bodies.append(response.read())
            assert response.headers["Content-type"] == "text/plain"
    assert bodies[:3] == [b"number0", b"number1", b"number2"]
    assert set(bodies[3:]) <= set(bodies[:3])


def test_threads_are_set_and_put_back(engine):
    before = torch.get_num_threads()
    engine.put_in_force(1, {"interventions": [{"kind": "threads", "threads": before + 1}]})
    assert torch.get_num_threads() == before + 1
    engine.put_in_force(2, {})
    assert torch.get_num_threads() == before


def test_one_that_fails_is_told_and_the_others_go_on(engine, told):
    wrong = {"kind": "threads", "threads": "many"}
    engine.put_in_force(1, {"interventions": [wrong, {"kind": "cached"}]})
    assert engine.loading.cached
    assert [one.key for one in engine.on] == [key_of({"kind": "cached"})]
    assert "ValueError" in problems(told)[0]


def test_a_worker_looks_at_the_board(engine):
    Switchboard(engine.child.directory).write({"interventions": [{"kind": "cached"}]})
    engine.look()
    assert engine.loading.cached
    assert engine.generation == 1


def test_every_kind_is_found_where_its_library_is(engine):
    model = Model()
    assert seams.optimizer()
    assert seams.backward()
    assert {id(p) for p in model.layer.parameters()} <= {id(p) for p in seams.parameters()}
    importless = seams.env(), seams.collectives(), seams.callbacks()
    assert all(isinstance(found, list) for found in importless)
