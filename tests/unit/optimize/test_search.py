"""The search keeps what is faster and computes the same, says why not of the rest, and stops."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from unstall.optimize import equivalence, search
from unstall.optimize.case import Proposal, Unfit
from unstall.optimize.equivalence import Noted, Unobservable
from unstall.optimize.search import Options, Search
from unstall.optimize.sources import Sources
from unstall.optimize.trial import Comparison, Timed, TrialFailed
from unstall.optimize.workshop import Ran

RAN = Ran(None, 0, 1.0, False, "")


class World:
    """A program of which every change's effect is known: name → (speed-up, what it computes)."""

    def __init__(self, monkeypatch, effects, *, exactness="exact", predicted=None, jitter=0.0):
        self.effects, self.exactness = effects, exactness
        self.predicted = predicted or {}
        self.jitter = jitter
        self.compared = 0
        monkeypatch.setattr(search, "diagnose", self.diagnose)
        monkeypatch.setattr(search, "compare", self.compare)
        monkeypatch.setattr(equivalence, "observe", self.observe)
        monkeypatch.setattr(search.remedies, "every", lambda: [self, self.unfit])
        self.NAME = "remedy"
        self.unfit = SimpleNamespace(NAME="other", propose=lambda case: Unfit("it does not fit"))

    def changes(self, arm):
        return arm.sources.changed.get("names", b"").decode().split()

    def diagnose(self, program, workshop, arm, **_):
        case = SimpleNamespace(arm=arm)
        return SimpleNamespace(
            case=case, kind="optimizer", step_s=0.1 / self.speed(arm), batch_size=4, workers=0,
            report=SimpleNamespace(findings=[]),
        )  # fmt: skip

    def propose(self, case):
        done = self.changes(case.arm)
        return [
            Proposal(
                "remedy", name, self.exactness, self.predicted.get(name, 1.5), "",
                sources=Sources({"names": " ".join([*done, name]).encode()}), key=name,
            )
            for name in self.effects if name not in done
        ]  # fmt: skip

    def speed(self, arm):
        result = 1.0
        for name in self.changes(arm):
            result *= self.effects[name][0]
        return result

    def compare(self, workshop, base, changed, window, *, enough, pairs=5, limit_s=0.0, seen=None):
        found = Comparison(list(seen.pairs) if seen else [])
        for _ in range(pairs):
            self.compared += 1
            if any(self.effects[name][0] <= 0 for name in self.changes(changed)):
                raise TrialFailed("ended with exit code 1: boom")
            wobble = 1 + self.jitter * (-1) ** self.compared
            a, b = 1 / self.speed(base), wobble / self.speed(changed)
            found.pairs.append((Timed(10, 10, 10 * a, 0, RAN), Timed(10, 10, 10 * b, 0, RAN)))
            if len(found.pairs) >= 2 and enough(found):
                break
        return found

    def observe(self, workshop, arm, kind, steps, *, timeout, check=None):
        text = "".join(self.effects[name][1] for name in self.changes(arm))
        if text == "unseen":
            raise Unobservable("exit code 3")
        import numpy as np

        value = np.array([1.0 + 1e-6 * text.count("~") + text.count("!")], dtype="float32")
        return [Noted("loss.0", 0, "float32", (1,), value.tobytes(), value.tobytes())]


def run(world, *, tell=lambda line: None, **options):
    workshop = SimpleNamespace(suspended_s=0.0)
    return Search(None, workshop, Options(**options), tell).run()


def entry(result, name):
    return next(one for one in result.tried if one.name.endswith(name))


def test_the_gains_are_kept_one_after_the_other(monkeypatch):
    world = World(monkeypatch, {"a": (2.0, ""), "b": (1.5, ""), "c": (1.0, "")}, jitter=0.01)
    result = run(world)
    assert [one.title for one in result.kept] == ["a", "b"]
    assert result.total.value == pytest.approx(3.0, rel=0.02) and "no remedy left" in result.why_stopped
    assert entry(result, "c").why_not == "no gain" and entry(result, "a").equivalent is True
    assert "other: it does not fit" in result.notes


def test_the_largest_promise_is_tried_first(monkeypatch):
    world = World(monkeypatch, {"a": (1.2, ""), "b": (1.2, "")}, predicted={"a": 1.1, "b": 1.3}, jitter=0.001)
    assert [one.title for one in run(world).kept] == ["b", "a"]


@pytest.mark.parametrize(
    ("effect", "exactness", "kept", "word"),
    [
        ((3.0, "!"), "exact", False, "something else: step 1, loss"),
        ((3.0, "!"), "close", False, "something else"),
        ((3.0, "~"), "exact", False, "something else"),
        ((3.0, "~"), "close", True, None),
        ((3.0, "unseen"), "exact", False, "exit code 3"),
        ((-1.0, ""), "exact", False, "boom"),
    ],
)
def test_what_computes_something_else_or_fails_is_dropped_and_said(monkeypatch, effect, exactness, kept, word):
    result = run(World(monkeypatch, {"a": effect}, exactness=exactness))
    found = entry(result, "a")
    assert found.kept is kept and (word is None or word in found.why_not)
    assert bool(result.kept) is kept and (result.total is not None) is kept


def test_a_gain_that_noise_could_explain_is_not_kept(monkeypatch):
    result = run(World(monkeypatch, {"a": (1.06, "")}, jitter=0.3))
    assert not result.kept and entry(result, "a").why_not in ("the gain is not certain", "no gain")


def test_a_gain_that_is_not_certain_is_gone_on_with_while_there_is_time(monkeypatch):
    world = World(monkeypatch, {"a": (1.35, ""), "b": (1.0, "")}, jitter=0.3, predicted={"b": 1.1})
    lines = []
    result = run(world, tell=lines.append)
    assert [one.title for one in result.kept] == ["a"]
    tried = [line for line in lines if line.startswith("trying")]
    assert "so far: more pairs of runs" in tried[1], "what looks best comes first"
    assert [one.name for one in result.tried] == ["remedy: a", "remedy: b"], "told once"


def test_a_gain_that_no_number_of_runs_would_show_is_left(monkeypatch):
    world = World(monkeypatch, {"a": (1.07, "")}, jitter=0.3)
    result = run(world)
    assert entry(result, "a").why_not == "the gain is not certain" and world.compared <= 10


def test_what_is_not_certain_when_another_change_is_kept_is_proposed_anew(monkeypatch):
    world = World(monkeypatch, {"a": (1.1, ""), "b": (2.0, "")}, predicted={"a": 3.0})
    compare, lines = world.compare, []

    def noisy_at_first(workshop, base, changed, window, **options):
        world.jitter = 0.2 if world.changes(changed) == ["a"] else 0.001
        return compare(workshop, base, changed, window, **options)

    monkeypatch.setattr(search, "compare", noisy_at_first)
    result = run(world, tell=lines.append)
    assert [one.title for one in result.kept] == ["b", "a"]


def test_below_what_is_worth_it_nothing_is_tried(monkeypatch):
    world = World(monkeypatch, {"a": (2.0, "")}, predicted={"a": 1.04})
    result = run(world)
    assert world.compared == 0 and entry(result, "a").why_not.startswith("not tried")


def test_training_is_changed_only_when_that_is_allowed(monkeypatch):
    effects = {"a": (2.0, "!")}
    result = run(World(monkeypatch, effects, exactness="training-changing", jitter=0.001))
    assert not result.kept and [one.title for one in result.advice] == ["a"]
    allowed = run(World(monkeypatch, effects, exactness="training-changing", jitter=0.001), allow_training_change=True)
    assert [one.title for one in allowed.kept] == ["a"]


def test_a_spent_budget_ends_it(monkeypatch):
    result = run(World(monkeypatch, {"a": (2.0, "")}), budget_s=0.0)
    assert not result.kept and result.why_stopped == "the budget is spent"
    assert entry(result, "a").why_not.startswith("not tried: the budget was spent")


def test_no_trial_is_begun_that_would_end_beyond_the_budget(monkeypatch):
    world = World(monkeypatch, dict.fromkeys("abcdef", (1.3, "")))
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(search.time, "monotonic", lambda: clock.now)
    compare, diagnose = world.compare, world.diagnose

    def taking(call, seconds):
        def taken(*args, **options):
            clock.now += seconds
            return call(*args, **options)

        return taken

    monkeypatch.setattr(search, "compare", taking(compare, 10.0))
    monkeypatch.setattr(search, "diagnose", taking(diagnose, 10.0))
    result = run(world, budget_s=120.0)
    # A trial is two comparisons and a diagnosis: of the 90 s before the last comparison, the first diagnosis takes 10.
    assert [one.title for one in result.kept] == ["a", "b"]
    assert result.why_stopped == "the budget is spent" and clock.now <= 120.0 and result.total is not None


def test_a_remedy_that_fails_stops_no_other(monkeypatch):
    world = World(monkeypatch, {"a": (2.0, "")})

    def broken(case):
        raise RuntimeError("boom")

    monkeypatch.setattr(world.unfit, "propose", broken)
    result = run(world)
    assert [one.title for one in result.kept] == ["a"]
    assert any("boom" in note for note in result.notes)
