"""Each intervention, switched on and off in this process."""

import itertools
import os
import time
import urllib.request
from pathlib import Path

import pytest
import torch

from unstall.benchmark.reader import read_facts
from unstall.child.experiments.engine import Engine
from unstall.child.experiments.interventions.base import key_of
from unstall.child.experiments.interventions.threads import ThreadsIntervention
from unstall.child.experiments.switchboard import Switchboard
from unstall.child.main import Child
from unstall.child.seams import optimizer
from unstall.simplify import plan, registry


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


@pytest.fixture
def engine(tmp_path):
    """An engine of this process, with no condition left in force after the test; three calls teach a stub enough."""
    Switchboard(tmp_path, create=True)
    engine = Engine(Child(str(tmp_path), {}), collecting_s=0.0)
    engine.steps = itertools.count().__next__
    yield engine
    engine.put_in_force(0, {})


def put(engine, *specifications):
    """These in force, all others out of it."""
    engine.put_in_force(engine.generation + 1, {"interventions": list(specifications)})


def on_function(kind, name, **arguments):
    """The specification of an intervention on a function of this file."""
    return registry.interventions()[kind].specification(name=name, file=__file__, **arguments)


def on_work(component):
    return registry.components()[component].specification()


def problems(engine):
    path = Path(engine.child.directory) / f"info-{os.getpid()}.jsonl"
    facts = read_facts(path)[1].get("intervention", []) if path.exists() else []
    return [fact["text"] for fact in facts if fact["what"] == "problem"]


def test_a_stub_learns_and_then_answers(engine):
    put(engine, on_function("stub", "slow"))
    answers = [slow(i) for i in range(8)]
    assert answers[:3] == [0, 2, 4]
    assert set(answers[3:]) <= {0, 2, 4}
    assert engine.board.real_calls == 3
    put(engine)
    assert slow(21) == 42
    assert problems(engine) == []


def answered(engine):
    """Seconds that recorded answers took, as the parent is told."""
    facts = read_facts(Path(engine.child.directory) / f"info-{os.getpid()}.jsonl")[1].get("intervention", [])
    return [fact["seconds"] / fact["steps"] for fact in facts if fact["what"] == "answered"]


def pair(x):
    return x, [x]


def test_what_the_answers_take_is_told_by_their_number(engine):
    def call(times):
        for i in range(times):
            pair(i)

    put(engine, on_function("stub", "pair"))
    call(3 + 1000)
    put(engine)
    put(engine, on_function("stub", "pair"))
    call(4000)
    put(engine)
    call(100)
    first, second = answered(engine)
    assert second == pytest.approx(4 * first) and 0 < first / 1000 < 0.001
    put(engine, on_function("stub", "pair"))
    put(engine)
    assert len(answered(engine)) == 2, "none was given since"


def test_answers_in_a_loader_worker_cost_no_step_of_the_main_process(engine):
    engine.in_main = False
    engine.steps = lambda: Engine.steps(engine)
    put(engine, on_function("stub", "pair"))
    for i in range(10):
        pair(i)
    put(engine)
    assert answered(engine) == []


def test_two_on_one_function_do_not_undo_each_other(engine):
    stub = on_function("stub", "slow")
    delay = on_function("delay", "slow", share=0.1, by="sleep")
    put(engine, delay)
    put(engine, stub)

    def call(x):
        return slow(x)

    assert [call(i) for i in range(3)] == [0, 2, 4]
    put(engine, stub, delay)
    put(engine, stub)
    assert call(21) in (0, 2, 4), "the stub is in force still"
    put(engine)
    assert call(21) == 42


@pytest.mark.parametrize(
    ("name", "call", "why"), [("fill", lambda: fill([]), "argument box"), ("count", count, "generator")]
)
def test_what_cannot_be_stubbed_is_told_and_goes_on_as_it_was(engine, name, call, why):
    put(engine, on_function("stub", name))
    for _ in range(5):
        call()
    box = []
    fill(box)
    assert box == [1]
    assert list(count()) == [1]
    assert why in problems(engine)[0]


def test_a_delay_adds_its_share_and_changes_no_result(engine):
    specification = on_function("delay", "slow", share=2.0, by="sleep")
    put(engine, specification)
    began = time.perf_counter()
    assert slow(3) == 6
    assert time.perf_counter() - began >= 0.03


@pytest.mark.parametrize(("rank", "is_slowed"), [("1", True), ("0", False)])
def test_a_delay_of_one_rank_is_in_force_on_that_one_alone(engine, monkeypatch, rank, is_slowed):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "2")
    put(engine, on_function("delay", "slow", share=2.0, by="sleep", rank=1))
    began = time.perf_counter()
    slow(3)
    assert (time.perf_counter() - began >= 0.03) is is_slowed
    put(engine)


def test_without_the_optimizer_nothing_is_learned(engine):
    model = Model()
    before = model.step()
    put(engine, on_work("optimizer"))
    assert torch.equal(model.step(), before)
    put(engine)
    assert not torch.equal(model.step(), before)


def test_a_closure_is_called_all_the_same(engine):
    model = Model()
    optimizer = torch.optim.LBFGS(model.layer.parameters())
    put(engine, on_work("optimizer"))
    assert optimizer.step(lambda: torch.tensor(7.0)) == 7


def test_without_backward_the_optimizer_still_has_gradients(engine):
    model = Model()
    put(engine, on_work("backward"))
    weights = [model.step() for _ in range(5)]
    assert all(not torch.equal(a, b) for a, b in itertools.pairwise(weights))
    assert engine.board.real_calls == 2


def test_requests_are_answered_from_the_record(engine):
    put(engine, on_work("network"))
    bodies = []
    for i in range(6):
        with urllib.request.urlopen(f"data:text/plain,number{i}") as response:
            bodies.append(response.read())
            assert response.headers["Content-type"] == "text/plain"
    assert bodies[:3] == [b"number0", b"number1", b"number2"]
    assert set(bodies[3:]) <= set(bodies[:3])


def test_threads_are_set_and_put_back(engine):
    before = torch.get_num_threads()
    put(engine, ThreadsIntervention.specification(threads=before + 1))
    assert torch.get_num_threads() == before + 1
    put(engine)
    assert torch.get_num_threads() == before


def test_checks_are_left_out_and_put_back_as_the_program_last_set_them(engine):
    wrong = torch.tensor(-1.0)
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    try:
        put(engine, on_work("checks"))
        assert not _notes_stacks() and torch.is_anomaly_enabled()
        with torch.autograd.set_detect_anomaly(True):
            assert not _notes_stacks() and torch.is_anomaly_check_nan_enabled()
        torch.distributions.Normal(0.0, wrong)
        put(engine)
        assert _notes_stacks() and torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
        with pytest.raises(ValueError, match="scale"):
            torch.distributions.Normal(0.0, wrong)
    finally:
        torch.autograd.set_detect_anomaly(False)


def test_checks_that_the_program_has_turned_off_stay_off(engine):
    torch.distributions.Distribution.set_default_validate_args(False)
    try:
        put(engine, on_work("checks"))
        put(engine)
        torch.distributions.Normal(0.0, torch.tensor(-1.0))
    finally:
        torch.distributions.Distribution.set_default_validate_args(True)


def _notes_stacks():
    """Whether an operator keeps the stack that it was called from."""
    return "traceback_" in torch.ones(2, requires_grad=True).exp().grad_fn.metadata


def test_one_that_fails_is_told_and_the_others_go_on(engine):
    wrong = ThreadsIntervention.specification(threads="many")
    put(engine, wrong, on_work("data"))
    assert engine.loading.cached
    assert [one.key for one in engine.on] == [key_of(on_work("data"))]
    assert "ValueError" in problems(engine)[0]


def test_a_worker_looks_at_the_board(engine):
    Switchboard(engine.child.directory).write({"interventions": [on_work("data")]})
    engine.poll()
    assert engine.loading.cached
    assert engine.generation == 1


def test_every_kind_of_work_is_found_where_its_library_is(engine):
    model = Model()
    targets = {name: kind.targets() for name, kind in registry.components().items()}
    assert targets["optimizer"] and targets["backward"] and targets["data"] and targets["network"]
    assert all(isinstance(found, (list, type(None))) for found in targets.values())
    assert {id(p) for p in model.layer.parameters()} <= {id(p) for p in optimizer.parameters()}


def test_a_kind_of_work_is_slowed_at_its_functions(engine):
    (specification,) = plan.delay("optimizer", None, 200.0).arm
    model = Model()
    put(engine, specification)
    began = time.perf_counter()
    for _ in range(20):
        model.optimizer.step()
    slowed_s = time.perf_counter() - began
    put(engine)
    began = time.perf_counter()
    for _ in range(20):
        model.optimizer.step()
    assert problems(engine) == [] and slowed_s > 5 * (time.perf_counter() - began)


def test_one_that_cannot_be_imported_is_told(engine):
    put(engine, {"kind": "theirs", "class": "no_such_package:Theirs"}, on_work("validation"))
    assert "ModuleNotFoundError" in problems(engine)[0]
    assert engine.loading.first_only
