"""Each intervention, switched on and off in this process."""

import itertools
import threading
import time
import urllib.request
from types import SimpleNamespace

import pytest
import torch

from unstall.child import seams
from unstall.child.seams import optimizer
from unstall.simplify import replay
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


def recur(depth):
    time.sleep(0.002)
    return recur(depth - 1) if depth else 0


def calls_of(timed):
    return sum(calls for _, _, calls in timed["bins"])


def seconds_of(timed):
    return sum(seconds for _, seconds, _ in timed["bins"])


def told_of(told, kind):
    return [facts for what, facts in told if what == kind]


def test_calls_are_timed_and_go_on_as_they_were(engine, told):
    specification = {"kind": "timed", "name": "slow", "file": __file__}
    engine.put_in_force(1, {"interventions": [specification]})
    began = time.monotonic()
    assert [slow(i) for i in range(5)] == [0, 2, 4, 6, 8]
    engine.put_in_force(2, {})
    assert slow(1) == 2
    (timed,) = told_of(told, "timed")
    assert timed["key"] == key_of(specification)
    assert calls_of(timed) == 5 and seconds_of(timed) >= 0.05
    assert began <= timed["bins"][0][0] <= timed["bins"][-1][0] <= time.monotonic()
    assert 0 <= timed["overhead"] < 1e-3


def test_of_recursion_the_outermost_call_counts(engine, told):
    engine.put_in_force(1, {"interventions": [{"kind": "timed", "name": "recur", "file": __file__}]})
    recur(4)
    engine.put_in_force(2, {})
    (timed,) = told_of(told, "timed")
    assert calls_of(timed) == 1 and seconds_of(timed) >= 0.01


def test_timing_starts_anew_each_time_and_leaves_errors_alone(engine, told):
    specification = {"kind": "timed", "name": "fail", "file": __file__}
    for generation in (1, 3):
        engine.put_in_force(generation, {"interventions": [specification]})
        with pytest.raises(KeyError, match="no such"):
            fail()
        engine.put_in_force(generation + 1, {})
    assert [calls_of(facts) for facts in told_of(told, "timed")] == [1, 1]


def fail():
    raise KeyError("no such")


def test_calls_of_other_threads_are_not_timed(engine, told):
    engine.put_in_force(1, {"interventions": [{"kind": "timed", "name": "slow", "file": __file__}]})
    thread = threading.Thread(target=slow, args=(1,))
    thread.start()
    thread.join()
    engine.put_in_force(2, {})
    assert told_of(told, "timed")[0]["bins"] == []


def tiny():
    return 1


def test_many_calls_are_added_up_to_a_few_figures(engine, told):
    engine.put_in_force(1, {"interventions": [{"kind": "timed", "name": "tiny", "file": __file__}]})
    began = time.monotonic()
    for _ in range(20_000):
        tiny()
    elapsed = time.monotonic() - began
    engine.put_in_force(2, {})
    (timed,) = told_of(told, "timed")
    assert calls_of(timed) == 20_000
    assert len(timed["bins"]) <= 500 * elapsed + 2
    assert seconds_of(timed) < elapsed


LARGE = list(map(float, range(1_000_000)))


def sweep():
    return sum(LARGE)


def rest():
    return sum(range(100))


def test_what_reads_much_memory_leaves_the_caches_emptier_than_what_reads_none(engine, told):
    emptied = {}
    for generation, name in enumerate(("sweep", "rest")):
        specification = {"kind": "cooling", "name": name, "file": __file__, "step_s": 0.0, "bytes": 1 << 19}
        engine.put_in_force(2 * generation + 1, {"interventions": [specification]})
        for _ in range(20):
            globals()[name]()
            time.sleep(0.011)
        engine.put_in_force(2 * generation + 2, {})
        cooling = told_of(told, "cooling")[-1]
        emptied[name] = cooling["by_call"]
        assert 0 <= cooling["by_step"] <= 1
    assert 0 <= emptied["rest"] < emptied["sweep"] <= 1


def test_many_short_calls_are_read_as_the_step_they_make(engine, told):
    specification = {"kind": "cooling", "name": "slow", "file": __file__, "step_s": 0.04, "bytes": 1 << 18}
    engine.put_in_force(1, {"interventions": [specification]})
    for _ in range(20):
        assert slow(1) == 2
    engine.put_in_force(2, {})
    assert slow(4) == 8
    (cooling,) = told_of(told, "cooling")
    assert cooling["by_call"] is not None and cooling["by_step"] is not None


def test_a_function_that_is_not_called_has_nothing_to_tell(engine, told):
    specification = {"kind": "cooling", "name": "slow", "file": __file__, "step_s": 0.04, "bytes": 1 << 18}
    engine.put_in_force(1, {"interventions": [specification]})
    engine.put_in_force(2, {})
    assert told_of(told, "cooling") == []


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
    finders = seams.finders()
    assert finders["optimizer"]()
    assert finders["backward"]()
    assert {id(p) for p in model.layer.parameters()} <= {id(p) for p in optimizer.parameters()}
    importless = [finders[kind]() for kind in ("env", "collectives", "callbacks", "network", "data")]
    assert all(isinstance(found, list) for found in importless)


def record():
    return {"rows": [{"loss": 0.5, "names": ["a", "b"]}] * 50}


def test_what_an_answer_takes_is_told_unless_it_is_given_as_it_is(engine, told):
    answers = {}
    for generation, name in enumerate(("record", "tiny")):
        engine.put_in_force(2 * generation + 1, {"interventions": [{"kind": "timed", "name": name, "file": __file__}]})
        globals()[name]()
        engine.put_in_force(2 * generation + 2, {})
        answers[name] = told_of(told, "timed")[-1]["answer"]
    assert answers["record"] > answers["tiny"] == 0


class Stubborn(list):
    def copy(self):
        raise TypeError("there is only one")


def stubborn():
    return [Stubborn()], torch.ones(2)


def test_calls_are_timed_whatever_they_return(engine, told):
    engine.put_in_force(1, {"interventions": [{"kind": "timed", "name": "stubborn", "file": __file__}]})
    assert stubborn()[0] == [[]]
    engine.put_in_force(2, {})
    (timed,) = told_of(told, "timed")
    assert calls_of(timed) == 1 and timed["answer"] >= 0


class Gate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, values):
        return self.weight * values


def test_backward_inside_a_module_is_told_with_its_time(engine, told):
    gate = Gate()
    engine.put_in_force(1, {"interventions": [{"kind": "timed", "name": "Gate.forward", "file": __file__}]})
    began = time.monotonic()
    for _ in range(3):
        gate(torch.ones(3)).sum().backward()
    ended = time.monotonic()
    engine.put_in_force(2, {})
    (timed,) = told_of(told, "timed")
    assert len(timed["backward"]) == 3 and timed["zeros"] > 0
    assert all(began <= left <= ended and 0 <= seconds <= ended - began for left, seconds in timed["backward"])
    assert torch.equal(gate.weight.grad, torch.full((3,), 3.0))
