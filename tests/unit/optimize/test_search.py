"""The search keeps what is faster and computes the same, says why not of the rest, and stops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from optimize_builders import make_diagnosis, make_finding, make_report, make_run

from unstall.optimize import thresholds
from unstall.optimize.agent import AgentChange
from unstall.optimize.comparison import PairedRuns, TimedRun, TrialFailed
from unstall.optimize.equivalence import Reference, Unobservable
from unstall.optimize.proposal import Attempt, Lines, Proposal
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.result import SearchOptions
from unstall.optimize.sameness import ObservedTensor
from unstall.optimize.search import Search
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources
from unstall.records.remedies import RemedyStatus
from unstall.records.report import Caller, Culprit

RUN = make_run()


class Unfit(Remedy):
    name = "other"
    brief = "fits nothing"
    patterns = ("healthy",)
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

    def __init__(self, effects, *, exactness="exact", predicted=None, jitter=0.0, others=(), takes_s=0.0, lines=None):
        self.effects, self.exactness = effects, exactness
        self.predicted, self.lines = predicted or {}, lines or {}
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
                     sources=Sources({"names": " ".join([*done, name]).encode()}), key=name,
                     lines=self.lines.get(name))
            for name in self.effects if name not in done
        ]  # fmt: skip

    def compare(self, base, changed, window, *, enough, pairs=5, limit_s=0.0, earlier=None, ordinarily=False):
        self.now += self.takes_s
        found = PairedRuns(list(earlier.pairs) if earlier else [])
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

    def observe(self, variant, kind, steps, *, check=None, perturbed=None, shift=0, ordinarily=False):
        text = "".join(self.effects[name][1] for name in self.changes(variant))
        if text == "unseen":
            raise Unobservable("exit code 3")
        rounding = 1e-7 * (perturbed or 0)
        value = np.array([1.0 + rounding + 1e-6 * text.count("~") + text.count("!")], dtype="float32").tobytes()
        return [ObservedTensor("loss.0", 0, "float32", (1,), value, value)]

    def search(self, log=lambda line: None, agent=None, **options):
        return Search(
            diagnose=self.diagnose, compare=self.compare, reference=Reference(self.observe), remedies=self.remedies,
            clock=lambda: self.now, options=SearchOptions(**options), log=log, agent=agent,
        ).run()  # fmt: skip


def attempt(result, title):
    return next(one for one in result.attempts if one.proposal.title == title)


def kept(result):
    return [one.proposal.title for one in result.kept]


def test_equal_results_are_called_close_where_they_differ_only_later():
    world = World({"a": (2.0, "")}, exactness="close")
    assert attempt(world.search(), "a").sameness == "exact"
    world = World({"a": (2.0, "")}, exactness="close")
    world.never_exact = True
    assert attempt(world.search(), "a").sameness == "close"


def test_the_gains_are_kept_one_after_the_other():
    result = World({"a": (2.0, ""), "b": (1.5, ""), "c": (1.0, "")}, jitter=0.01).search()
    assert kept(result) == ["a", "b"]
    assert result.total.value == pytest.approx(3.0, rel=0.02) and result.stopped_by == "nothing left"
    assert attempt(result, "c").status is RemedyStatus.SLOWER and attempt(result, "a").sameness == "exact"
    assert "other: it does not fit" in result.notes
    assert result.inapplicable == ["other: it does not fit"]  # a cure of the pattern that the verdict is


def test_the_largest_promise_is_tried_first():
    world = World({"a": (1.2, ""), "b": (1.2, "")}, predicted={"a": 1.1, "b": 1.3}, jitter=0.001)
    assert kept(world.search()) == ["b", "a"]


class Blamed(World):
    """A program of which the fifth line of a script is the culprit."""

    def __init__(self, script, effects, **given):
        super().__init__(effects, **given)
        self.script = script
        for path in (script, script.with_name("data.py")):
            path.write_text("pass\n" * 9)

    def diagnose(self, variant):
        self.now += self.takes_s
        caller = Caller(file=str(self.script.with_name("data.py")), line=5, function="sample", share=0.6)
        culprit = Culprit(file=str(self.script), line=5, function="load", share=0.5, callers=[caller])
        report = make_report(findings=[make_finding("input-bound", culprit=culprit)])
        return make_diagnosis(
            step_s=0.1 / self.speed(variant), sources=variant.sources, root=self.script.parent, report=report
        )


class Keeping(World):
    """A program of which one change keeps samples: in the first epoch it is so many times as fast."""

    def __init__(self, later, first):
        super().__init__({"a": (later, "")}, jitter=0.001)
        self.first = first

    def propose(self, context):
        return [replace(proposal, needs_revisits=True) for proposal in super().propose(context)]

    def compare(self, base, changed, window, **given):
        kept, self.effects = self.effects, self.effects if window.fold else {"a": (self.first, "")}
        try:
            return super().compare(base, changed, window, **given)
        finally:
            self.effects = kept


@pytest.mark.parametrize(("later", "first", "epochs"), [(1.36, 0.37, 8), (1.36, 0.7, 3), (3.0, 1.0, 1)])
def test_what_keeps_samples_has_to_win_its_first_epoch_back_soon(later, first, epochs):
    result = Keeping(later, first).search()
    (one,) = (one for one in result.attempts if one.proposal.title == "a")
    assert one.record().first_epoch_speedup == pytest.approx(first, rel=0.01)
    words = f"won back by epoch {epochs}" if epochs > 1 else "the first one is no slower"
    if epochs > thresholds.MOST_EPOCHS_TO_PAY:
        assert one.status is RemedyStatus.SLOWER and one.reason.endswith(words)
    else:
        assert kept(result) == ["a"] and result.cost_of_first_epoch.endswith(words)


class Compiling(World):
    """A program whose one change compiles at each start, so many seconds at first and then so many, and gains much."""

    def __init__(self, first_s, later_s):
        super().__init__({"a": (2.0, "")}, jitter=0.001)
        self.starts_s = [first_s]
        self.later_s = later_s

    def propose(self, context):
        return [replace(proposal, compiles=True) for proposal in super().propose(context)]

    def compare(self, base, changed, window, **given):
        found = super().compare(base, changed, window, **given)
        for number, (a, b) in enumerate(found.pairs):
            start_s = self.starts_s.pop() if self.starts_s else self.later_s
            runs = make_run(seconds=a.seconds + 3.0), make_run(seconds=b.seconds + 3.0 + start_s)
            found.pairs[number] = replace(a, run=runs[0]), replace(b, run=runs[1])
        return found


@pytest.mark.parametrize(("later_s", "steps", "is_kept"), [(6.0, 12, True), (149.0, 298, True), (151.0, 302, False)])
def test_what_compiles_has_to_win_each_start_back_soon(later_s, steps, is_kept):
    result = Compiling(400.0, later_s).search()
    (one,) = (one for one in result.attempts if one.proposal.title == "a")
    cost = one.start_cost
    assert (cost.first_s, one.record().start_s) == (pytest.approx(400), pytest.approx(later_s))
    assert cost.steps_to_pay == pytest.approx(steps, rel=0.01)
    if is_kept:
        assert kept(result) == ["a"]
        assert result.costs_of_start[0].startswith(
            f"remedy: each run compiles for {later_s:.0f} s, the first for 400 s"
        )
    else:
        assert (one.status, one.reason) == (RemedyStatus.SLOWER, cost.told()) and not result.costs_of_start


def test_what_compiles_is_not_begun_with_little_time_left():
    result = Compiling(40.0, 5.0).search(budget_s=90.0)
    one = attempt(result, "a")
    assert one.status is RemedyStatus.UNTRIED
    assert one.reason.startswith("not tried: compiling takes a minute or more, and 68 s are left")


def test_a_quick_search_tries_what_compiles_last():
    class Both(Compiling):
        def __init__(self):
            super().__init__(40.0, 5.0)
            self.effects, self.predicted = {"a": (2.0, ""), "b": (1.5, "")}, {"a": 3.0, "b": 1.2}

        def propose(self, context):
            return [replace(proposal, compiles=proposal.title == "a") for proposal in World.propose(self, context)]

    assert kept(Both().search(quick=True)) == ["b"]
    assert kept(Both().search())[0] == "a"


def tried(search):
    lines: list[str] = []
    search(lines.append)
    return [line.split()[2] for line in lines if line.startswith("trying")]


def test_an_exact_cure_of_the_culprits_line_is_tried_before_what_promises_more(tmp_path):
    script = tmp_path / "train.py"
    lines = {"cure": Lines(script, 4, 6), "elsewhere": Lines(script, 7, 9), "other": Lines(tmp_path / "x.py", 4, 6)}
    effects = dict.fromkeys(["setting", "other", "elsewhere", "cure"], (1.0, ""))
    promises = {"setting": 9.0, "other": 5.0, "elsewhere": 4.0, "cure": 1.2}
    given = {"predicted": promises, "lines": lines}
    assert tried(Blamed(script, effects, **given).search) == ["cure", "setting", "other", "elsewhere"]
    assert tried(Blamed(script, effects, exactness="close", **given).search)[-1] == "cure"


class Rounded(Remedy):
    """Proposes the change of a world that is called far, as one of another rounding."""

    name = "rounded"
    brief = "changes what is known"
    patterns = ()
    exactness = "close"
    world: World

    def propose(self, context):
        return [one for one in self.world.known(context) if one.title == "far"]


class Mixed(Blamed):
    def known(self, context):
        return super().propose(context)

    def propose(self, context):
        return [one for one in self.known(context) if one.title != "far"]


@pytest.mark.parametrize(("promise", "first"), [(1.4, "cure"), (1.5, "far")])
def test_it_waits_for_one_of_the_same_line_that_promises_far_more_and_is_as_good_as_exact(tmp_path, promise, first):
    script = tmp_path / "train.py"
    rounded = Rounded()
    world = Mixed(
        script, dict.fromkeys(["cure", "far"], (1.0, "")), predicted={"cure": 1.2, "far": promise},
        lines=dict.fromkeys(["cure", "far"], Lines(script, 4, 6)), others=(rounded,),
    )  # fmt: skip
    rounded.world = world
    assert tried(world.search)[0] == first


def test_an_exact_cure_of_a_line_that_leads_to_the_culprit_comes_next(tmp_path):
    script = tmp_path / "train.py"
    lines = {"cure": Lines(script, 4, 6), "caller": Lines(tmp_path / "data.py", 4, 6)}
    world = Blamed(
        script, dict.fromkeys(["setting", "caller", "cure"], (1.0, "")),
        predicted={"setting": 9.0, "caller": 1.3, "cure": 1.2}, lines=lines,
    )  # fmt: skip
    assert tried(world.search) == ["cure", "caller", "setting"]


def test_an_inconclusive_cure_waits_its_turn(tmp_path):
    script = tmp_path / "train.py"
    world = Blamed(
        script, {"cure": (1.3, ""), "b": (1.0, "")}, jitter=0.3, predicted={"b": 1.9, "cure": 1.2},
        lines={"cure": Lines(script, 4, 6)},
    )  # fmt: skip
    assert tried(world.search)[:2] == ["cure", "b"]


def test_a_quick_search_stops_with_the_first_change_kept():
    world = World({"a": (1.0, ""), "b": (2.0, ""), "c": (1.5, "")}, predicted={"a": 3.0, "b": 2.0}, jitter=0.001)
    result = world.search(quick=True)
    assert kept(result) == ["b"] and result.stopped_by == "first kept"
    assert result.total == attempt(result, "b").speedup and result.last is result.first
    assert attempt(result, "a").status is RemedyStatus.SLOWER
    untried = attempt(result, "c")
    assert untried.status is RemedyStatus.UNTRIED and "stopped with the first change kept" in untried.reason


@pytest.mark.parametrize(("gain", "comparisons"), [(1.2, 2), (1.08, 4)])
def test_a_quick_search_confirms_what_chance_could_reach(gain, comparisons):
    world = World({"a": (gain, "")}, jitter=0.001)
    assert kept(world.search(quick=True)) == ["a"]
    assert world.compared == comparisons


def test_a_quick_search_confirms_what_is_not_the_only_one_that_was_tried():
    world = World({"a": (1.0, ""), "b": (1.2, "")}, predicted={"a": 3.0}, jitter=0.001)
    assert kept(world.search(quick=True)) == ["b"]
    assert world.compared == 2 + 4


def test_a_quick_search_begins_one_trial_whatever_it_takes():
    class SlowToStart(World):
        def observe(self, *given, **options):
            self.now += 40.0
            return super().observe(*given, **options)

    world = SlowToStart({"a": (1.0, ""), "b": (2.0, "")}, predicted={"a": 3.0}, takes_s=10.0)
    result = world.search(quick=True, budget_s=60.0)
    assert [one.status for one in result.attempts] == [RemedyStatus.SLOWER, RemedyStatus.UNTRIED]
    assert result.stopped_by == "budget"


def test_no_trial_is_begun_that_could_not_keep_its_change_in_time():
    class SlowToStart(World):
        def observe(self, *given, **options):
            self.now += 30.0
            return super().observe(*given, **options)

    world = SlowToStart({"a": (2.0, "")})
    result = world.search(budget_s=250.0)  # of which 60 go by first, and 62 are for the last comparison
    assert world.compared == 0 and result.stopped_by == "budget"
    assert "a trial takes 210 s, and 128 s of the budget are left" in attempt(result, "a").reason
    assert kept(SlowToStart({"a": (2.0, "")}).search(budget_s=900.0)) == ["a"]


def test_the_first_trial_may_be_the_last_comparison_where_there_is_no_time_for_both():
    class SlowToStart(World):
        def observe(self, *given, **options):
            self.now += 30.0
            return super().observe(*given, **options)

    world = SlowToStart({"a": (2.0, ""), "b": (1.5, "")}, takes_s=40.0)
    result = world.search(budget_s=330.0)  # of which 100 go by first, and 82 are for the last comparison
    assert kept(result) == ["a"] and result.stopped_by == "budget"
    assert result.total == attempt(result, "a").speedup and result.last is result.first
    assert attempt(result, "b").status is RemedyStatus.UNTRIED


@pytest.mark.parametrize(
    ("effect", "exactness", "status", "word"),
    [
        ((3.0, "!"), "exact", RemedyStatus.NOT_EQUIVALENT, "step 1, loss: 2 instead of 1"),
        ((3.0, "!"), "close", RemedyStatus.NOT_EQUIVALENT, "times as far as rounding goes"),
        ((3.0, "!"), "reduced", RemedyStatus.ADVICE, "would bring 3.00×; it changes results: --allow reduced"),
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


def test_what_is_measured_counts_and_not_what_was_expected():
    result = World({"a": (3.0, "~"), "b": (2.0, "")}, exactness="exact", jitter=0.001).search()
    assert [(one.proposal.title, one.sameness) for one in result.kept] == [("a", "close"), ("b", "exact")]


@pytest.mark.parametrize("exactness", ["reduced", "training-changing"])
def test_results_are_changed_only_when_that_is_allowed(exactness):
    effects = {"a": (2.0, "!")}
    result = World(effects, exactness=exactness, jitter=0.001).search()
    advice = attempt(result, "a")
    assert (
        not result.kept and advice.status is RemedyStatus.ADVICE and advice.speedup.value == pytest.approx(2, rel=0.1)
    )
    allowed = World(effects, exactness=exactness, jitter=0.001).search(allow=frozenset({exactness}))
    assert kept(allowed) == ["a"] and allowed.kept[0].record().sameness == "reduced"


@pytest.mark.parametrize(("budget_s", "measured"), [(300.0, True), (240.0, False)])
def test_a_long_trial_before_it_does_not_keep_what_is_not_allowed_from_being_measured(budget_s, measured):
    """What such a change would bring is given less time than a trial, and no comparison comes after it."""

    class Doubtful(World):
        def compare(self, base, changed, *given, **options):
            self.now += 200.0 if "a" in self.changes(changed) else 0.0
            return super().compare(base, changed, *given, **options)

    class Lossy(Unfit):
        name = "lossy"
        exactness = "reduced"

        def propose(self, context):
            return [Proposal("b", 2.0, "", sources=Sources({"names": b"b"}), key="b")]

    world = Doubtful({"a": (1.0, ""), "b": (2.0, "!")}, others=[Lossy()])
    world.propose = lambda context: [Proposal("a", 1.5, "", sources=Sources({"names": b"a"}), key="a")]
    result = world.search(budget_s=budget_s)
    assert not result.kept and world.now == 200.0
    assert (attempt(result, "b").speedup is not None) == measured


def test_an_allowed_change_of_results_is_what_the_next_changes_are_compared_with():
    effects = {"a": (2.0, "!"), "b": (1.8, "~"), "c": (1.6, "!")}
    predicted = {"a": 3.0, "b": 2.0, "c": 1.5}

    class Some(World):
        """A world that proposes only some of the changes."""

        titles = "bc"

        def propose(self, context):
            return [one for one in super().propose(context) if one.title in self.titles]

    class First(Some):
        name, titles = "first", "a"

    first = First(effects, exactness="reduced", predicted=predicted)
    world = Some(effects, exactness="close", predicted=predicted, jitter=0.001, others=[first])
    result = world.search(allow=frozenset({"reduced"}))
    assert [(one.proposal.title, one.sameness) for one in result.kept] == [("a", "reduced"), ("b", "close")]
    assert attempt(result, "c").status is RemedyStatus.NOT_EQUIVALENT


def test_what_is_not_allowed_is_measured_only_while_there_is_time():
    world = World({"a": (2.0, "!")}, exactness="reduced")
    result = world.search(budget_s=0.0)
    assert world.compared == 0 and "--allow reduced" in attempt(result, "a").reason


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
    result = world.search(budget_s=124.0)
    # Of the 93 s before the last comparison, the first diagnosis takes 10; a trial is two comparisons of 10 s, and after
    # each but the last there is a diagnosis.
    assert kept(result) == ["a", "b", "c"]
    assert result.stopped_by == "budget" and world.now <= 124.0 and result.total is not None


def test_a_remedy_that_fails_stops_no_other():
    result = World({"a": (2.0, "")}, others=[Broken()]).search()
    assert kept(result) == ["a"]
    (note,) = (note for note in result.notes if note.startswith("broken: "))
    line = Broken.propose.__code__.co_firstlineno + 1
    wanted = f"broken: it failed, please report this: RuntimeError: boom (test_search.py:{line}, in propose)"
    assert note == wanted


class Scripted:
    """An agent that gives one change after the other, and sees the verdicts on those before."""

    def __init__(self, *names):
        self.names, self.verdicts = list(names), []

    def is_worth_asking(self, result, worth):
        return True

    def ask(self, result, seconds):
        self.verdicts = [(each.proposal.title, each.status) for each in result.attempts if each.remedy.name == "agent"]
        if not self.names:
            return None
        name = self.names.pop(0)
        done = result.best.sources.changed.get("names", b"").decode().split()
        sources = Sources({"names": " ".join([*done, name]).encode()})
        return Attempt(AgentChange("close"), Proposal(name, 1.5, "", sources=sources, key=name))


class Silent(World):
    """No remedy of the program's fits."""

    def propose(self, context):
        return []


def test_only_the_good_changes_stay_and_each_verdict_is_told():
    effects = {"good": (2.0, ""), "slow": (0.9, ""), "hack": (3.0, "!"), "crash": (0.0, ""), "better": (1.5, "")}
    agent = Scripted(*effects)
    result = Silent(effects, jitter=0.01).search(agent=agent)
    assert [each.proposal.title for each in result.kept] == ["good", "better"]
    assert result.total.value == pytest.approx(3.0, rel=0.02) and result.stopped_by == "nothing left"
    assert dict(agent.verdicts) == {
        "good": RemedyStatus.KEPT, "better": RemedyStatus.KEPT, "slow": RemedyStatus.SLOWER,
        "hack": RemedyStatus.NOT_EQUIVALENT, "crash": RemedyStatus.FAILED,
    }  # fmt: skip


def test_an_agent_whose_changes_keep_crashing_is_asked_no_more():
    effects = dict.fromkeys(("one", "two", "three", "four", "five"), (0.0, ""))
    agent = Scripted(*effects)
    Silent(effects, jitter=0.01).search(agent=agent)
    assert agent.names == ["four", "five"]


def test_the_agent_is_asked_after_the_remedies_and_within_the_budget():
    effects = {"a": (2.0, ""), "b": (1.5, "")}
    agent = Scripted(*(f"x{number}" for number in range(1000)))
    world = World({**effects, **dict.fromkeys(agent.names, (1.0, ""))}, jitter=0.01, takes_s=10.0)
    world.propose = lambda context: [each for each in World.propose(world, context) if each.title in effects]
    result = world.search(agent=agent, budget_s=400.0)
    assert [each.proposal.title for each in result.kept] == ["a", "b"]
    assert result.stopped_by == "budget" and 0 < len(agent.verdicts) < 50
