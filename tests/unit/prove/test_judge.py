"""The five words, from runs of programs that are made up; their times are given."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from made_up_proofs import (
    SIDES,
    TRAIN,
    is_plain,
    is_watched,
    make_account,
    make_run,
    make_run_of,
    make_tensors,
    prove,
    seeded,
)

from unstall.prove.left_behind.effects import STDOUT, Content
from unstall.prove.left_behind.saves import Saved
from unstall.prove.runs import OriginalFailed
from unstall.prove.trees import Sides

WEIGHTS = "/program/model.pt"


def test_faster_and_the_same_is_proven_with_all_that_it_rests_on():
    proof, runs = prove(seeded, lambda plan: seeded(plan, seconds=5.0))
    assert (proof.verdict, proof.sameness, proof.pairs) == ("proven", "exact", 3)
    assert proof.ratio.value == pytest.approx(2) and proof.ratio.low > 1.02
    assert proof.seconds.changed == 5.0 and proof.memory_bytes.original == 1e6
    assert any("24 optimizer steps" in line for line in proof.known_by)
    assert any("seeds changed by" in line for line in proof.known_by)
    assert {} in runs.plans


def test_no_faster():
    proof, _ = prove(seeded, lambda plan: seeded(plan, seconds=20.0))
    assert (proof.verdict, proof.sameness) == ("not-faster", "exact")


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"account": make_account(steps=12)}, "optimizer steps"),
        ({"account": make_account(rows=8)}, "samples in training"),
        ({"tensors": make_tensors((1.0, 2.5))}, "step 1, output"),
        ({"output": "loss 0.6\n"}, STDOUT),
        ({"status": 1}, "exit code"),
        ({"account": None}, "end of the run"),
    ],
)
def test_what_is_plainly_different_is_said_after_the_first_steps(given, place):
    proof, runs = prove(make_run_of, lambda plan: make_run(seconds=1.0, **given))
    assert proof.verdict == "different" and place in proof.first_difference.place
    assert {} not in runs.plans and proof.pairs == 0


def test_a_result_that_fits_one_seed_only_is_different_under_another():
    proof, _ = prove(seeded, lambda plan: make_run(seconds=1.0))
    assert proof.verdict == "different" and proof.first_difference.place == "step 1, output"


def test_what_differs_only_where_nothing_watches_is_different():
    proof, _ = prove(seeded, lambda plan: seeded(plan, seconds=1.0, output="loss 0.5\n" if plan else "loss 0.9\n"))
    assert proof.verdict == "different" and proof.first_difference.detail == "0.9 instead of 0.5"


def test_a_gain_that_is_gone_where_numbers_are_compared_is_not_proven():
    proof, _ = prove(seeded, lambda plan: seeded(plan, seconds=10.0 if plan else 1.0))
    assert proof.verdict == "inconclusive" and "nothing watches" in proof.reason


def test_watched_runs_whose_time_is_in_doubt_are_made_again():
    watched = itertools.count()

    def noisy(plan):
        compared = plan.get("observe") and not plan["clock"].get("steps") and "stress" not in plan
        is_held_up = compared and next(watched) < 3
        return seeded(plan, seconds=11.0 if is_held_up else 5.0)

    proof, _ = prove(seeded, noisy, budget_s=3000.0)
    assert proof.verdict == "proven" and proof.pairs > 3
    assert next(watched) > 4, "and what they compute is compared"


def test_every_second_pair_that_nothing_watches_has_seeds_that_nobody_knows():
    proof, runs = prove(seeded, lambda plan: seeded(plan, seconds=5.0))
    shifts = [(plan.get("seed") or {}).get("shift") for plan in runs.plans if not is_watched(plan)]
    # The last two find what a training with the other seeds has left.
    assert [shift is not None for shift in shifts] == [False, False, True, True, False, False, False, True]
    assert shifts[2] == shifts[3] and "1 of them under other seeds" in proof.known_by[-1]


def test_results_that_are_known_beforehand_are_different_where_nothing_watches_under_other_seeds():
    def known(plan, **given):
        shift = (plan.get("seed") or {}).get("shift")
        output = "loss 0.7\n" if shift and (is_watched(plan) or not given) else "loss 0.5\n"
        return seeded(plan, output=output, **given)

    proof, _ = prove(known, lambda plan: known(plan, seconds=5.0 if is_watched(plan) else 1.0))
    assert proof.verdict == "different" and proof.pairs == 2
    assert proof.first_difference.detail == "0.5 instead of 0.7"


def test_a_gain_that_is_gone_under_other_seeds_is_not_proven():
    def faster(plan):
        reseeded = "seed" in plan and not is_watched(plan)
        return seeded(plan, seconds=8.0 if reseeded else 5.0 if is_watched(plan) else 1.0)

    proof, _ = prove(seeded, faster)
    assert proof.verdict == "inconclusive" and "under others" in proof.reason


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"account": make_account(steps=1)}, "optimizer steps"),
        ({"account": None}, "end of the run"),
        ({"tensors": make_tensors((1.0, 2.5))}, "step 1, output"),
    ],
)
def test_what_is_other_under_its_own_seeds_alone_is_different(given, place):
    proof, runs = prove(seeded, lambda plan: seeded(plan, seconds=5.0) if not is_plain(plan) else make_run(**given))
    assert proof.verdict == "different" and proof.first_difference.place == place
    assert {} not in runs.plans


def test_what_the_original_does_not_reproduce_as_it_is_is_not_compared():
    steps = iter([20, 21])

    def original(plan):
        return seeded(plan, account=make_account(steps=next(steps) if is_plain(plan) else 24))

    proof, _ = prove(original, lambda plan: seeded(plan, seconds=5.0))
    assert proof.verdict == "proven" and any("the same twice" in line for line in proof.known_by)


def test_counts_are_compared_as_it_is_though_its_numbers_vary():
    values = iter(range(100))

    def original(plan, **given):
        return (
            seeded(plan, **given)
            if not is_plain(plan)
            else make_run(tensors=make_tensors((next(values), 1.0)), **given)
        )

    fewer = make_account(steps=3)
    proof, _ = prove(
        original, lambda plan: original(plan, seconds=5.0, **({"account": fewer} if is_plain(plan) else {}))
    )
    assert proof.verdict == "different" and proof.first_difference.place == "optimizer steps"


def test_output_that_varies_is_judged_by_the_range_of_more_runs():
    figures = iter([0.50, 0.52, 0.58, 0.51, 0.60, 0.53] * 9)

    def varying(plan, **given):
        return make_run(output=f"loss {next(figures):.2f}\n" if not plan else "loss 0.5\n", **given)

    proof, _ = prove(varying, lambda plan: make_run(seconds=5.0, output="loss 0.71\n" if not plan else "loss 0.5\n"))
    assert proof.verdict == "proven"


def test_other_words_on_stderr_are_said_and_not_judged():
    def logs(text):
        return lambda plan: seeded(plan, seconds=5.0, errors=Content.of(text.encode()))

    silent, _ = prove(logs("epoch 1 accuracy 0.5\n"), lambda plan: seeded(plan, seconds=1.0))
    same, _ = prove(logs("took 3 s\n"), lambda plan: seeded(plan, seconds=1.0, errors=Content.of(b"took 2 s\n")))
    assert silent.verdict == same.verdict == "proven"
    assert any(line.startswith("not judged: standard error") for line in silent.known_by)
    assert not any("standard error" in line for line in same.known_by)


def test_a_printed_figure_may_be_off_as_far_as_the_changes_own_rounding_goes():
    eps = 2.0**-23

    def original(plan):
        perturbed = plan.get("perturb") is not None
        shifted = 2.0 if (plan.get("seed") or {}).get("shift") else 1.0
        scale = shifted * (1 + eps * perturbed)
        return make_run(tensors=make_tensors((scale, 2 * scale)), output=f"accuracy {0.84 if perturbed else 0.85}\n")

    def rounded(accuracy):
        return lambda plan: make_run(
            seconds=5.0,
            tensors=make_tensors((((plan.get("seed") or {}).get("shift") and 2.0) or 1.0) * np.array([1 + eps, 2.0])),
            output=f"accuracy {accuracy}\n",
        )

    assert prove(original, rounded(0.86))[0].verdict == "proven"
    assert prove(original, rounded(0.4))[0].verdict == "different"


def test_rounding_that_shows_only_where_nothing_watches_is_learned_there():
    eps = 2.0**-23

    def run(plan, scale, accuracy, **given):
        return make_run(tensors=make_tensors((scale, 2.0)), output=f"accuracy {accuracy}\n", **given)

    def original(plan):
        perturbed, watched = plan.get("perturb") is not None, "observe" in plan
        return run(plan, 1 + eps * perturbed, 0.83 if perturbed and not watched else 0.85)

    def rounded(accuracy):
        return lambda plan: run(plan, 1 + eps, 0.85 if "observe" in plan else accuracy, seconds=5.0)

    proof, runs = prove(original, rounded(0.88))
    assert (proof.verdict, proof.sameness) == ("proven", "close")
    assert sum("perturb" in plan and "observe" not in plan for plan in runs.plans) == 4
    assert prove(original, rounded(0.4))[0].verdict == "different"


def test_an_original_that_fails_under_other_seeds_is_compared_under_its_own():
    def fails(plan, **given):
        return make_run(status=1 if (plan.get("seed") or {}).get("shift") else 0, **given)

    proof, runs = prove(fails, lambda plan: make_run(seconds=5.0))
    assert proof.verdict == "proven" and any("under other seeds the original fails" in line for line in proof.known_by)
    assert [plan for plan in runs.plans if not is_watched(plan)] == [{}] * 6


def test_a_program_without_seeds_is_timed_as_it_is():
    _, runs = prove(make_run_of, lambda plan: make_run(seconds=5.0))
    assert [plan for plan in runs.plans if not is_watched(plan)] == [{}] * 6


def test_other_values_are_accepted_where_they_are_allowed_and_other_counts_are_not():
    def other(plan, **given):
        return make_run(seconds=5.0, tensors=make_tensors((1.0, 2.5)), **given)

    proof, _ = prove(seeded, other, allow=frozenset({"reduced"}))
    assert (proof.verdict, proof.sameness) == ("proven", "reduced")
    fewer = {"account": make_account(steps=12)}
    proof, _ = prove(seeded, lambda plan: other(plan, **fewer), allow=frozenset({"reduced"}))
    assert proof.verdict == "different"
    proof, _ = prove(seeded, lambda plan: other(plan, **fewer), allow=frozenset({"training-changing"}))
    assert proof.verdict == "proven"


def test_a_budget_that_will_not_do_is_said_before_it_is_spent():
    proof, runs = prove(seeded, seeded, budget_s=50.0)
    assert proof.verdict == "inconclusive" and proof.more_s > 0 and runs.spent_s < 50.0


def test_a_change_that_touches_the_clock_is_refused_before_anything_runs():
    sides = Sides(SIDES.original, {TRAIN: b"import time\ntime.perf_counter = print\n"})
    proof, runs = prove(seeded, seeded, sides=sides)
    assert proof.verdict == "refused" and proof.first_difference.place == "train.py:2" and not runs.plans


@pytest.mark.parametrize("part", ["observe", "fault", "reached"])
def test_a_run_in_which_unstall_itself_failed_ends_the_proof(part):
    def failing(plan, **given):
        failures = ["torch.autograd: no such function", "torch: none"] if part in plan else []
        return seeded(plan, failures=failures, **given)

    proof, _ = prove(failing, lambda plan: failing(plan, seconds=5.0))
    assert proof.verdict == "inconclusive"
    assert proof.reason == "unstall itself failed in a run: torch.autograd: no such function; please report this"


def test_two_sides_that_are_the_same_are_refused():
    proof, _ = prove(seeded, seeded, sides=Sides(SIDES.original, SIDES.original))
    assert proof.verdict == "refused"


def test_an_original_that_fails_is_no_proof():
    with pytest.raises(OriginalFailed, match="exit code 1: ValueError"):
        prove(lambda plan: make_run(status=1), seeded)


def test_what_only_rounds_differently_is_close_as_far_as_perturbed_runs_show():
    eps = 2.0**-23

    def original(plan):
        shift, perturb = plan.get("seed", {}).get("shift"), plan.get("perturb")
        scale = (2.0 if shift else 1.0) * (1 + (eps if perturb and perturb["seed"] % 2 else -eps if perturb else 0.0))
        return make_run(tensors=make_tensors((scale, 2 * scale)))

    def rounded(scale):
        def changed(plan):
            shifted = 2.0 if plan.get("seed", {}).get("shift") else 1.0
            return make_run(seconds=5.0, tensors=make_tensors((shifted * scale, 2 * shifted)))

        return changed

    proof, runs = prove(original, rounded(1 + 2 * eps))
    assert (proof.verdict, proof.sameness) == ("proven", "close")
    assert any(plan.get("perturb") for plan in runs.plans)
    proof, _ = prove(original, rounded(1 + 1e-3))
    assert proof.verdict == "different" and "times as far as rounding goes" in proof.first_difference.detail


def test_of_a_program_whose_own_runs_have_nothing_in_common_nothing_is_said():
    runs = itertools.count()

    def chance(plan):
        numbers = np.random.default_rng(next(runs)).normal(size=64)
        return make_run(seconds=5.0 if plan == {} else 10.0, tensors=make_tensors(numbers))

    proof, _ = prove(chance, chance)
    assert proof.verdict == "inconclusive" and "does it seed its random numbers" in proof.reason


def saving(plan, times, **given):
    """A run that leaves a file of numbers, which it has saved so often."""
    run = seeded(plan, saves={WEIGHTS: Saved(times, times)}, **given)
    contents = {**run.effects.contents, WEIGHTS: Content.of(b"\0\1")}
    return replace(run, effects=replace(run.effects, contents=contents))


def test_checkpoints_that_are_saved_less_often_are_different():
    proof, _ = prove(lambda plan: saving(plan, 12), lambda plan: saving(plan, 1, seconds=5.0))
    assert proof.verdict == "different"
    assert str(proof.first_difference) == f"{WEIGHTS}: saved once instead of 12 times"


def test_checkpoints_that_may_be_saved_by_the_clock_are_not_told_from_fewer():
    proof, _ = prove(lambda plan: saving(plan, 12), lambda plan: saving(plan, 6, seconds=5.0))
    assert proof.verdict == "inconclusive" and "6 times instead of 12 times" in proof.reason


def test_as_many_checkpoints_or_more_are_the_same():
    for times in (12, 13):
        proof, _ = prove(lambda plan: saving(plan, 12), lambda plan, times=times: saving(plan, times, seconds=5.0))
        assert proof.verdict == "proven"


def test_memory_that_grows_to_the_end_is_not_proven():
    flat = make_account(memory=[1e9] * 200)
    growing = make_account(memory=[1e9 + 1e6 * step for step in range(200)])
    proof, _ = prove(lambda plan: seeded(plan, account=flat), lambda plan: seeded(plan, seconds=5.0, account=growing))
    assert proof.verdict == "inconclusive" and "its memory grows" in proof.reason
    proof, _ = prove(
        lambda plan: seeded(plan, account=growing), lambda plan: seeded(plan, seconds=5.0, account=growing)
    )
    assert proof.verdict == "proven"


@pytest.mark.parametrize(
    ("given", "verdict", "words"),
    [
        (
            {"refused": ["a datagram to 192.0.2.1:53"]},
            "inconclusive",
            "refuses (a datagram to 192.0.2.1:53), which the",
        ),
        ({"outlived_s": 2.0}, "inconclusive", "a process of it goes on for 2.0 s after its end"),
        ({"outlived_s": 0.1}, "proven", ""),
        ({"account": make_account(shared=1200)}, "inconclusive", "it leaves 1,200 bytes in shared memory"),
        ({"account": make_account(most_threads=192)}, "inconclusive", "it has 192 threads at once now and then, and"),
        ({"account": make_account(most_threads=40)}, "proven", ""),
        ({"account": make_account(nice=[0, -20, 0])}, "refused", "the system prefers it"),
        ({"account": make_account(policy=[0, 1])}, "refused", "the system prefers it"),
        ({"account": make_account(nice=[0, 10])}, "proven", ""),
    ],
)
def test_what_a_change_does_to_the_machine_and_no_result_shows(given, verdict, words):
    proof, _ = prove(seeded, lambda plan: seeded(plan, seconds=5.0, **given))
    assert proof.verdict == verdict and words in proof.reason
    proof, _ = prove(lambda plan: seeded(plan, **given), lambda plan: seeded(plan, seconds=5.0, **given))
    assert proof.verdict == "proven"


def drawing(plan, *, by_sample, **given):
    """A run whose numbers are others where each sample has a seed, and follow from the program's seeds without."""
    seed = plan.get("seed") or {}
    scale = 2.0 if seed.get("shift") else 1.0
    return make_run(tensors=make_tensors((by_sample if seed.get("seed") else scale, scale)), **given)


def test_a_change_that_draws_for_a_batch_at_once_is_compared_where_nobody_seeds_samples():
    proof, runs = prove(
        lambda plan: drawing(plan, by_sample=5.0), lambda plan: drawing(plan, by_sample=6.0, seconds=5.0)
    )
    assert (proof.verdict, proof.sameness) == ("proven", "exact")
    assert proof.known_by[0].startswith("random numbers are drawn as the program draws them")
    whole = [plan for plan in runs.plans if "account" in plan and plan["clock"]["steps"] is None]
    assert all((plan.get("seed") or {}).get("seed") is None for plan in whole)


def test_a_program_without_seeds_of_its_own_is_never_compared_that_way():
    numbers = iter(range(100))

    def unseeded(plan, by_sample):
        has_seed = (plan.get("seed") or {}).get("seed")
        return make_run(tensors=make_tensors((by_sample if has_seed else float(next(numbers)), 1.0)))

    proof, _ = prove(lambda plan: unseeded(plan, 5.0), lambda plan: unseeded(plan, 6.0))
    assert proof.verdict == "different" and "step 1" in proof.first_difference.place
