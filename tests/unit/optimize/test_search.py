"""The search keeps what is faster and computes the same, says why not of the rest, and stops."""

from __future__ import annotations

import numpy as np
import pytest
from optimize_builders import make_diagnosis, make_run

from unstall.optimize.comparison import Comparison, TimedRun, TrialFailed
from unstall.optimize.equivalence import ObservedTensor, Reference, Unobservable
from unstall.optimize.proposal import Proposal
from unstall.optimize.remedies.base import NotApplicable, Remedy
from unstall.optimize.search import Options, Search
from unstall.optimize.source.files import Sources
from unstall.records.report import RemedyStatus

RUN = make_run()


class Unfit(Remedy):
    name = "other"
    brief = "fits nothing"
    patterns = ()
    exactness = "exact"

    def propose(self, context):
        raise NotApplicable("it does not fit")


class Broken(Unfit):
    name = "broken"

    def propose(self, context):
        raise RuntimeError("boom")


class World(Remedy):
    """A program of which every change's effect is known: name → (speed-up, what it computes); and its one remedy."""

    name = "remedy"
    brief = "changes what is known"
    patterns = ()
    exactness = "exact"

    def __init__(self, effects, *, exactness="exact", predicted=None, jitter=0.0, others=(), takes_s=0.0):
        self.effects, self.exactness = effects, exactness
        self.predicted = predicted or {}
        self.jitter, self.takes_s = jitter, takes_s
        self.compared, self.now = 0, 0.0
        self.remedies = {one.name: one for one in (self, Unfit(), *others)}

    def changes(self, variant):
        return variant.sources.changed.get("names", b"").decode().split()

    def speed(self, variant):
        result = 1.0
        for name in self.changes(variant):
            result *= self.effects[name][0]
        return result

    def jitter_of(self, changed):
        return self.jitter

    def diagnose(self, variant):
        self.now += self.takes_s
        return make_diagnosis(step_s=0.1 / self.speed(variant), sources=variant.sources)

    def propose(self, context):
        done = context.sources.changed.get("names", b"").decode().split()
        return [
            Proposal(name, self.predicted.get(name, 1.5), "",
                     sources=Sources({"names": " ".join([*done, name]).encode()}), key=name)
            for name in self.effects if name not in done
        ]  # fmt: skip

    def compare(self, base, changed, window, *, enough, pairs=5, limit_s=0.0, earlier=None):
        self.now += self.takes_s
        found = Comparison(list(earlier.pairs) if earlier else [])
        for _ in range(pairs):
            self.compared += 1
            if any(self.effects[name][0] <= 0 for name in self.changes(changed)):
                raise TrialFailed("ended with exit code 1: boom")
            wobble = 1 + self.jitter_of(changed) * (-1) ** self.compared
            a, b = 1 / self.speed(base), wobble / self.speed(changed)
            found.pairs.append((TimedRun(10, 10, 10 * a, RUN), TimedRun(10, 10, 10 * b, RUN)))
            if len(found.pairs) >= 2 and enough(found):
                break
        return found

    def observe(self, variant, kind, steps, *, check=None):
        text = "".join(self.effects[name][1] for name in self.changes(variant))
        if text == "unseen":
            raise Unobservable("exit code 3")
        value = np.array([1.0 + 1e-6 * text.count("~") + text.count("!")], dtype="float32").tobytes()
        return [ObservedTensor("loss.0", 0, "float32", (1,), value, value)]

    def search(self, log=lambda line: None, **options):
        return Search(
            diagnose=self.diagnose, compare=self.compare, reference=Reference(self.observe), remedies=self.remedies,
            clock=lambda: self.now, options=Options(**options), log=log,
        ).run()  # fmt: skip


def attempt(result, title):
    return next(one for one in result.attempts if one.proposal.title == title)


def kept(result):
    return [one.proposal.title for one in result.kept]


def test_the_gains_are_kept_one_after_the_other():
    result = World({"a": (2.0, ""), "b": (1.5, ""), "c": (1.0, "")}, jitter=0.01).search()
    assert kept(result) == ["a", "b"]
    assert result.total.value == pytest.approx(3.0, rel=0.02) and result.stopped_by == "nothing left"
    assert attempt(result, "c").status is RemedyStatus.SLOWER and attempt(result, "a").equivalent is True
    assert "other: it does not fit" in result.notes


def test_the_largest_promise_is_tried_first():
    world = World({"a": (1.2, ""), "b": (1.2, "")}, predicted={"a": 1.1, "b": 1.3}, jitter=0.001)
    assert kept(world.search()) == ["b", "a"]


@pytest.mark.parametrize(
    ("effect", "exactness", "status", "word"),
    [
        ((3.0, "!"), "exact", RemedyStatus.NOT_EQUIVALENT, "something else: step 1, loss"),
        ((3.0, "!"), "close", RemedyStatus.NOT_EQUIVALENT, "something else"),
        ((3.0, "~"), "exact", RemedyStatus.NOT_EQUIVALENT, "something else"),
        ((3.0, "~"), "close", RemedyStatus.KEPT, None),
        ((3.0, "unseen"), "exact", RemedyStatus.NOT_EQUIVALENT, "exit code 3"),
        ((-1.0, ""), "exact", RemedyStatus.FAILED, "boom"),
    ],
)
def test_what_computes_something_else_or_fails_is_dropped_and_said(effect, exactness, status, word):
    result = World({"a": effect}, exactness=exactness).search()
    found = attempt(result, "a")
    is_kept = status is RemedyStatus.KEPT
    assert found.status is status and (word is None or word in found.reason)
    assert found.record().kept is is_kept and bool(result.kept) is is_kept and (result.total is not None) is is_kept


def test_a_gain_that_noise_could_explain_is_not_kept():
    result = World({"a": (1.06, "")}, jitter=0.3).search()
    assert not result.kept and attempt(result, "a").status in (RemedyStatus.INCONCLUSIVE, RemedyStatus.SLOWER)


def test_an_inconclusive_gain_is_measured_further_while_there_is_time():
    lines = []
    world = World({"a": (1.35, ""), "b": (1.0, "")}, jitter=0.3, predicted={"b": 1.1})
    result = world.search(lines.append)
    assert kept(result) == ["a"]
    tried = [line for line in lines if line.startswith("trying")]
    assert "so far: more pairs of runs" in tried[1], "what looks best comes first"
    assert [one.name for one in result.attempts] == ["remedy: a", "remedy: b"], "each is in the result once"


def test_a_gain_that_no_number_of_runs_would_show_is_left():
    world = World({"a": (1.07, "")}, jitter=0.3)
    result = world.search()
    assert attempt(result, "a").status is RemedyStatus.INCONCLUSIVE and world.compared <= 10


def test_what_is_inconclusive_when_another_change_is_kept_is_proposed_anew():
    class NoisyAtFirst(World):
        def jitter_of(self, changed):
            return 0.2 if self.changes(changed) == ["a"] else 0.001

    result = NoisyAtFirst({"a": (1.1, ""), "b": (2.0, "")}, predicted={"a": 3.0}).search()
    assert kept(result) == ["b", "a"] and [one.name for one in result.attempts] == ["remedy: b", "remedy: a"]


def test_below_what_is_worth_it_nothing_is_tried():
    world = World({"a": (2.0, "")}, predicted={"a": 1.04})
    result = world.search()
    assert world.compared == 0 and attempt(result, "a").status is RemedyStatus.BELOW_WORTH


def test_training_is_changed_only_when_that_is_allowed():
    effects = {"a": (2.0, "!")}
    result = World(effects, exactness="training-changing", jitter=0.001).search()
    assert not result.kept and attempt(result, "a").status is RemedyStatus.ADVICE
    allowed = World(effects, exactness="training-changing", jitter=0.001).search(allow_training_change=True)
    assert kept(allowed) == ["a"]


def test_a_spent_budget_ends_it():
    result = World({"a": (2.0, "")}).search(budget_s=0.0)
    assert not result.kept and result.stopped_by == "budget"
    assert attempt(result, "a").status is RemedyStatus.UNTRIED


def test_an_interrupted_search_says_what_was_left():
    class Interrupted(World):
        def compare(self, *args, **options):
            raise KeyboardInterrupt

    result = Interrupted({"a": (2.0, ""), "b": (1.5, "")}).search()
    assert result.stopped_by == "interrupted" and result.total is None
    assert all("interrupted" in one.reason and one.status is RemedyStatus.UNTRIED for one in result.attempts)
    assert len(result.attempts) == 2


def test_no_trial_is_begun_that_would_end_beyond_the_budget():
    world = World(dict.fromkeys("abcdef", (1.3, "")), takes_s=10.0)
    result = world.search(budget_s=120.0)
    # A trial is two comparisons and a diagnosis: of the 90 s before the last comparison, the first diagnosis takes 10.
    assert kept(result) == ["a", "b"]
    assert result.stopped_by == "budget" and world.now <= 120.0 and result.total is not None


def test_a_remedy_that_fails_stops_no_other():
    result = World({"a": (2.0, "")}, others=[Broken()]).search()
    assert kept(result) == ["a"]
    assert any("boom" in note for note in result.notes)
