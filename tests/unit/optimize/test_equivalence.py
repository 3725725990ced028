"""Which runs the comparison takes, and what they are compared with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unstall.optimize.agent import AgentChange
from unstall.optimize.comparison import TrialFailed
from unstall.optimize.equivalence import NothingSeen, Reference, Unobservable, failures_in, observe
from unstall.optimize.proposal import Attempt, Proposal
from unstall.optimize.remedies import all_remedies
from unstall.optimize.sameness import ObservedTensor
from unstall.optimize.thresholds import OTHER_SEEDS
from unstall.optimize.trial_runner import TrialRun, Variant


class Ended:
    """A runner whose runs have these files."""

    def __init__(self, folder, **files):
        self.folder = folder
        for name, content in files.items():
            (folder / f"{name}.txt").write_text(content)

    def run(self, variant, plan, **options):
        return TrialRun(self.folder, status=0, seconds=1.0, timed_out=False, output="")


def test_a_run_in_which_unstall_itself_failed_is_not_compared(tmp_path):
    runner = Ended(tmp_path, **{"complaints": "torch: no such function\n" * 2, "bootstrap-error": "not started\n"})
    (tmp_path / "clock.json").write_text("{}")
    assert failures_in(tmp_path) == ["not started", "torch: no such function"]
    with pytest.raises(Unobservable, match="unstall itself failed in it: not started"):
        observe(runner, Variant(), "optimizer", 2)


def test_a_run_in_which_nothing_failed_says_so(tmp_path):
    assert failures_in(tmp_path) == []


class Runs:
    """Runs of a program whose loss is known for each variant; perturbed, it is off by some last places."""

    def __init__(self, **losses):
        self.losses, self.made = losses, []

    def observe(self, variant, kind, steps, *, check=None, perturbed=None, shift=0, ordinarily=False):
        name = variant.settings.get("name", "original")
        self.made.append((name, perturbed))
        if name not in self.losses:
            raise Unobservable("exit code 1")
        loss = np.array([self.losses[name] + 1e-7 * (perturbed or 0)], dtype="float32").tobytes()
        return [ObservedTensor("loss.0", 0, "float32", (1,), loss, loss)]


def judge(reference, name, before=(), remedy=None):
    attempt = Attempt(remedy or all_remedies()["threads"], Proposal(name, 1.5, ""))
    return reference.judge(Variant(settings={"name": name}), [*before, attempt]), attempt


class Forking(Runs):
    """Runs that are forks unless they are asked to be ordinary ones; a fork's loss is that of this name."""

    def __init__(self, fork, **losses):
        super().__init__(**losses)
        self.fork, self.forks, self.ordinary = fork, True, 0

    def observe(self, variant, kind, steps, *, ordinarily=False, **options):
        if self.forks and not ordinarily and variant == Variant():
            variant = Variant(settings={"name": self.fork})
        else:
            self.ordinary += 1
        return super().observe(variant, kind, steps, **options)

    def stop(self):
        forked, self.forks = self.forks, False
        return forked


@pytest.mark.parametrize(
    ("fork", "trusted", "ordinary"), [("original", True, 1), ("other", False, 2), ("one that fails", False, 2)]
)
def test_forks_are_trusted_if_one_computes_what_the_program_does(fork, trusted, ordinary):
    runs = Forking(fork, original=1.0, other=1.1)
    reference = Reference(runs.observe, runs.stop)
    reference.observe("optimizer")
    assert (runs.forks, runs.ordinary, reference.is_reproducible) == (trusted, ordinary, True)


def test_a_program_that_is_not_forked_runs_twice_even_if_its_runs_differ():
    losses = iter([1.0, 1.1])
    runs = Runs()
    runs.observe = lambda *given, **options: Runs(original=next(losses)).observe(*given, **options)
    reference = Reference(runs.observe)
    reference.observe("optimizer")
    assert not reference.is_reproducible and next(losses, None) is None


def test_the_original_is_perturbed_once_and_only_when_that_is_needed():
    runs = Runs(original=1.0, same=1.0, near=1.000001, far=1.1)
    reference = Reference(runs.observe)
    reference.observe("optimizer")
    assert judge(reference, "same")[0].sameness == "exact"
    assert runs.made == [("original", None)] * 2 + [("same", None)]
    assert judge(reference, "near")[0].sameness == "close" and judge(reference, "far")[0].sameness == "reduced"
    assert [perturbed for name, perturbed in runs.made if name == "original"] == [None, None, 0, 1, 2, 3]


class Tipping(Runs):
    """Two steps; under these shifts of the seeds, what a variant computes is far off in the second one."""

    def __init__(self, tips, at_step=1):
        super().__init__(original=1.0, near=1.000001)
        self.tips, self.at_step, self.shifts = tips, at_step, []

    def observe(self, variant, kind, steps, *, shift=0, **options):
        (first,) = super().observe(variant, kind, steps, **options)
        tensors = [first, replace(first, step=1)]
        if variant != Variant():
            self.shifts.append(shift)
            if shift in self.tips:
                far = np.array([1.1], dtype="float32").tobytes()
                tensors[self.at_step] = replace(tensors[self.at_step], digest=far, values=far)
        return tensors


@pytest.mark.parametrize(
    ("tips", "sameness", "shifts"),
    [
        ({0}, "close", [0, OTHER_SEEDS[0]]),
        ({0, OTHER_SEEDS[0]}, "close", [0, *OTHER_SEEDS]),
        ({0, *OTHER_SEEDS}, "reduced", [0, *OTHER_SEEDS]),
    ],
)
def test_what_rounding_tips_over_under_one_seed_is_looked_at_under_others(tips, sameness, shifts):
    runs = Tipping(tips)
    reference = Reference(runs.observe)
    reference.observe("optimizer")
    verdict, _ = judge(reference, "near")
    assert (verdict.sameness, runs.shifts) == (sameness, shifts)
    assert sameness == "close" or verdict.reason.startswith("step 2")


def test_what_differs_in_the_first_step_differs_under_all_seeds():
    runs = Tipping({0}, at_step=0)
    reference = Reference(runs.observe)
    reference.observe("optimizer")
    assert judge(reference, "near")[0].sameness == "reduced" and runs.shifts == [0]


def test_what_an_agent_wrote_is_taken_as_it_is():
    runs = Tipping({0})
    reference = Reference(runs.observe)
    reference.observe("optimizer")
    assert judge(reference, "near", remedy=AgentChange("close"))[0].sameness == "reduced" and runs.shifts == [0]


def test_a_change_that_changes_nothing_on_top_of_a_close_one_is_exact():
    reference = Reference(Runs(original=1.0, near=1.000001).observe)
    reference.observe("optimizer")
    verdict, attempt = judge(reference, "near")
    assert verdict.sameness == "close" and judge(reference, "near", [attempt])[0].sameness == "exact"


def test_after_an_allowed_change_of_results_that_is_what_counts():
    runs = Runs(original=1.0, coarse=1.1, near=1.100001)
    reference = Reference(runs.observe)
    reference.observe("optimizer")
    verdict, coarse = judge(reference, "coarse")
    assert verdict.sameness == "reduced" and judge(reference, "near", [coarse])[0].sameness == "reduced"
    reference.move_to(Variant(settings={"name": "coarse"}), coarse.observed)
    assert judge(reference, "near", [coarse])[0].sameness == "close"


def test_what_cannot_be_run_cannot_be_compared():
    reference = Reference(Runs(original=1.0).observe)
    reference.observe("optimizer")
    verdict, attempt = judge(reference, "broken")
    assert verdict.sameness is None and "exit code 1" in verdict.reason and not attempt.observed
    with pytest.raises(TrialFailed, match="could not be observed"):
        Reference(Runs().observe).observe("optimizer")


class Playing(Runs):
    """A program that plays before it learns: what its first steps show, by what counts as one."""

    def __init__(self, **shown):
        super().__init__()
        self.shown = shown

    def observe(self, variant, kind, steps, *, check=None, perturbed=None, shift=0, ordinarily=False):
        self.made.append(kind)
        shown = self.shown.get(kind, "too long")
        if shown == "nothing":
            raise NothingSeen("neither a loss nor an output of a model was seen")
        if shown == "too long":
            raise Unobservable("no end after 60 s")
        return [ObservedTensor(f"{shown}.0", 0, "float32", (1,), b"", b"1234")]


@pytest.mark.parametrize(
    ("env", "optimizer", "kind", "plays_first"),
    [
        ("loss", "loss", "env", False),
        ("nothing", "loss", "optimizer", True),
        ("output", "loss", "optimizer", False),
        ("output", "too long", "env", False),
    ],
)
def test_what_plays_before_it_learns_is_compared_by_its_optimizers_steps(env, optimizer, kind, plays_first):
    runs = Playing(env=env, optimizer=optimizer)
    reference = Reference(runs.observe)
    reference.observe("env", trains=True)
    assert (reference.kind, reference.plays_first, runs.made[-1], len(reference.runs)) == (kind, plays_first, kind, 2)
    with pytest.raises(TrialFailed, match="no end"):
        Reference(Playing(env="nothing").observe).observe("env", trains=True)
    with pytest.raises(TrialFailed, match="neither a loss"):
        Reference(Playing(env="nothing", optimizer="loss").observe).observe("env")
