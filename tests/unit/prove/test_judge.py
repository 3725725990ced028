"""The five words, from runs of programs that are made up; their times are given."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from unstall.optimize.sameness import ObservedTensor
from unstall.prove.calls import CalledFunction
from unstall.prove.effects import STDOUT, Content, Effects
from unstall.prove.judge import Judge, ProofOptions
from unstall.prove.reached import LOST, Place
from unstall.prove.runner import WholeRun
from unstall.prove.runs import OriginalFailed
from unstall.prove.saves import Saved
from unstall.prove.trees import Sides
from unstall.prove.volume import OperatorCall

TRAIN = Path("/program/train.py")
SIDES = Sides({TRAIN: b"a = 1\n"}, {TRAIN: b"a = 2\n"})


def make_account(steps=24, rows=16, **given):
    calls = [["train", rows, "float32", "00"]] * steps
    base = {"steps": steps, "calls": calls, "batches": [], "chains": {"calls": "00", "batches": ""}, "random": {},
            "nice": [0], "policy": [0], "shared": 0, "signals": [4], "cores": [2], "unsettled": 0}  # fmt: skip
    return {**base, **given}


def make_tensors(values=(1.0, 2.0), dtype="float32"):
    array = np.asarray(values, dtype)
    return [ObservedTensor("output.0", 0, dtype, array.shape, array.tobytes(), array.tobytes())]


def make_run(*, seconds=10.0, output="loss 0.5\n", status=0, timed_out=False, **given):
    effects = Effects(status, "ValueError: no" if status else "", {STDOUT: Content.of(output.encode())})
    clock = {"began": 0.0, "times": [1.0, 2.0, 3.0]}
    base = {"tensors": make_tensors(), "account": make_account(), "clock": clock}
    return WholeRun(seconds, timed_out, 1e6, effects, **{**base, **given})


class MadeUp:
    """Answers with runs that are made for the side, and for whether something watches; the first one is a look."""

    def __init__(self, original, changed, sides=SIDES):
        self.original, self.changed, self.before = original, changed, sides.original.get(TRAIN)
        self.spent_s = 0.0
        self.plans = []

    def run(self, files, plan, *, timeout, keeps_files=False):
        run = (self.original if files[TRAIN] == self.before else self.changed)(plan)
        run = replace(run, files={}) if keeps_files else run
        self.plans.append(plan)
        self.spent_s += run.seconds
        return run


def prove(original, changed, sides=SIDES, **options):
    runs = MadeUp(original, changed, sides)
    judge = Judge(runs, sides, ProofOptions(**options), clock=lambda: runs.spent_s)
    return judge.prove(), runs


def seeded(plan, **given):
    """A run whose numbers follow from its seeds."""
    shift = (plan.get("seed") or {}).get("shift")
    return make_run(tensors=make_tensors((3.0, 4.0) if shift else (1.0, 2.0)), **given)


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


def make_run_of(plan):
    return make_run()


def test_a_result_that_fits_one_seed_only_is_different_under_another():
    proof, _ = prove(seeded, lambda plan: make_run(seconds=1.0))
    assert proof.verdict == "different" and proof.first_difference.place == "step 1, output"


def test_what_differs_only_where_nothing_watches_is_different():
    proof, _ = prove(seeded, lambda plan: seeded(plan, seconds=1.0, output="loss 0.5\n" if plan else "loss 0.9\n"))
    assert proof.verdict == "different" and proof.first_difference.detail == "0.9 instead of 0.5"


def test_a_gain_that_is_gone_where_numbers_are_compared_is_not_proven():
    proof, _ = prove(seeded, lambda plan: seeded(plan, seconds=10.0 if plan else 1.0))
    assert proof.verdict == "inconclusive" and "nothing watches" in proof.reason


def is_watched(plan):
    return bool({"account", "reached", "fault", "held"} & set(plan))


def test_every_second_pair_that_nothing_watches_has_seeds_that_nobody_knows():
    proof, runs = prove(seeded, lambda plan: seeded(plan, seconds=5.0))
    shifts = [(plan.get("seed") or {}).get("shift") for plan in runs.plans if not is_watched(plan)]
    assert [shift is not None for shift in shifts] == [False, False, True, True, False, False]
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


def is_plain(plan):
    """Whether a run is compared, under the program's own seeds."""
    return is_watched(plan) and "seed" not in plan and "fault" not in plan


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


OWN_WAY, USUAL = (Place(str(TRAIN), "f", 1, 1, offset) for offset in (2, 4))


def test_a_way_that_is_taken_under_the_programs_own_seeds_alone_is_not_proven():
    def known(plan):
        own = "reached" in plan and "seed" not in plan
        return seeded(plan, seconds=5.0, reached=frozenset({USUAL, OWN_WAY} if own else {USUAL}))

    proof, runs = prove(seeded, known)
    assert proof.verdict == "inconclusive" and proof.reason.startswith("train.py:1 runs under the program's own seeds")
    assert len([plan for plan in runs.plans if "reached" in plan]) == 6


def test_a_rare_case_in_the_data_does_not_hinder_a_proof():
    ways = iter([{USUAL, OWN_WAY}, {USUAL}, {USUAL, OWN_WAY}])
    proof, runs = prove(
        seeded,
        lambda plan: seeded(plan, seconds=5.0, reached=frozenset(next(ways) if "reached" in plan else ())),
    )
    assert proof.verdict == "proven" and len([plan for plan in runs.plans if "reached" in plan]) == 3


def test_lines_of_the_change_that_no_run_reached_are_said():
    proof, _ = prove(seeded, lambda plan: seeded(plan, seconds=5.0))
    assert proof.verdict == "proven" and proof.unreached == ["train.py:1"]


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


def test_a_program_that_fails_where_it_is_followed_is_not_proven():
    proof, _ = prove(seeded, lambda plan: seeded(plan, seconds=5.0, status=3 if "reached" in plan else 0))
    assert proof.verdict == "inconclusive" and "exit code 3" in proof.reason


def test_an_original_that_fails_under_other_seeds_is_compared_under_its_own():
    def fails(plan, **given):
        return make_run(status=1 if (plan.get("seed") or {}).get("shift") else 0, **given)

    proof, runs = prove(fails, lambda plan: make_run(seconds=5.0))
    assert proof.verdict == "proven" and any("under other seeds the original fails" in line for line in proof.known_by)
    assert [plan for plan in runs.plans if not is_watched(plan)] == [{}] * 6


def test_a_program_without_seeds_is_timed_as_it_is():
    _, runs = prove(make_run_of, lambda plan: make_run(seconds=5.0))
    assert [plan for plan in runs.plans if not is_watched(plan)] == [{}] * 6


def ending(plan, *, fails=1, saved=b"\0weights", **given):
    """A run that ends so where a call fails; a model is saved by then."""
    status = fails if "fault" in plan else 0
    run = seeded(plan, status=status, **given)
    files = {"/program/model.pt": Content.of(saved if status or "fault" in plan else b"\0weights")}
    return replace(run, effects=replace(run.effects, contents={**run.effects.contents, **files}))


def test_both_end_alike_where_a_call_of_the_model_fails():
    proof, runs = prove(ending, lambda plan: ending(plan, seconds=5.0))
    assert proof.verdict == "proven" and any("fails late in the run" in line for line in proof.known_by)
    faults = [plan["fault"] for plan in runs.plans if "fault" in plan]
    wanted = [(18, "error"), (18, "interrupt"), (1, "full")]
    assert faults == [{"call": call, "mode": "train", "kind": kind} for call, kind in wanted for _ in range(2)]


@pytest.mark.parametrize(
    ("given", "place", "detail"),
    [
        ({"fails": 0}, "exit code", "0 instead of 1"),
        ({"saved": b""}, "/program/model.pt", "is not written"),
    ],
)
def test_errors_that_are_hidden_and_saves_that_an_error_loses_are_different(given, place, detail):
    proof, _ = prove(ending, lambda plan: ending(plan, seconds=5.0, **given))
    assert proof.verdict == "different" and "fails late in the run" in proof.reason
    assert (proof.first_difference.place, proof.first_difference.detail) == (place, detail)


def test_what_is_saved_beside_the_numbers_must_be_the_same_where_something_goes_wrong():
    def saving_epoch(plan, epoch, **given):
        file = io.BytesIO()
        torch.save({"epoch": epoch if "fault" in plan else 3, "weights": torch.ones(4)}, file)
        run = ending(plan, **given)
        contents = {**run.effects.contents, "/program/model.pt": Content.of(file.getvalue())}
        return replace(run, effects=replace(run.effects, contents=contents))

    proof, _ = prove(lambda plan: saving_epoch(plan, 2), lambda plan: saving_epoch(plan, 1, seconds=5.0))
    assert proof.verdict == "different" and proof.first_difference.detail == "holds another state"
    assert (
        prove(lambda plan: saving_epoch(plan, 2), lambda plan: saving_epoch(plan, 2, seconds=5.0))[0].verdict
        == "proven"
    )


def test_a_program_that_writes_no_files_is_not_given_a_full_disk():
    _, runs = prove(seeded, lambda plan: seeded(plan, seconds=5.0))
    assert {plan["fault"]["kind"] for plan in runs.plans if "fault" in plan} == {"error", "interrupt"}


def test_an_interrupted_run_that_passes_for_a_whole_one_is_different():
    def changed(plan):
        is_interrupted = plan.get("fault", {}).get("kind") == "interrupt"
        return ending(plan, seconds=5.0, **({"fails": 0} if is_interrupted else {}))

    proof, _ = prove(ending, changed)
    assert proof.verdict == "different" and "where Ctrl-C ends it late in the run: exit code" in proof.reason


def repeating(plan, output, **given):
    """A run that prints something else over the files of an earlier run."""
    return seeded(plan, **given, **({"output": output} if "held" in plan else {}))


def test_what_differs_over_the_files_of_an_earlier_run_is_different():
    def changed(plan):
        return repeating(plan, "loss 0.7\n", seconds=5.0)

    proof, _ = prove(seeded, changed)
    assert proof.verdict == "different" and "an earlier run has left its files" in proof.reason
    assert prove(lambda plan: repeating(plan, "loss 0.7\n"), changed)[0].verdict == "proven"


def test_a_process_that_goes_on_where_it_is_held_up_is_inconclusive():
    def changed(plan):
        return seeded(plan, seconds=5.0, outlived_s=0.9 if "held" in plan else 0.1)

    proof, runs = prove(seeded, changed)
    assert proof.verdict == "inconclusive" and "may go on after its end" in proof.reason
    assert len([plan for plan in runs.plans if "held" in plan]) == 2


def test_a_program_that_hangs_where_a_call_fails_is_different_unless_the_original_does():
    def hangs(plan):
        return ending(plan, seconds=5.0, timed_out="fault" in plan)

    assert prove(ending, hangs)[0].verdict == "different"
    assert prove(hangs, lambda plan: ending(plan, seconds=2.0))[0].verdict == "proven"
    late = replace(ending({"fault": {}}), timed_out=True, seconds=900.0)
    proof, _ = prove(ending, lambda plan: late if "fault" in plan else ending(plan, seconds=5.0))
    assert (proof.verdict, proof.reason) == ("inconclusive", "the budget is spent")


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


def test_a_program_that_ends_the_following_is_not_proven():
    proof, _ = prove(
        seeded, lambda plan: seeded(plan, seconds=5.0, reached=frozenset({LOST} if "reached" in plan else ()))
    )
    assert proof.verdict == "inconclusive" and "debugger" in proof.reason


def shortened(plan, steps=24, epochs=2):
    """An account of a run whose epochs are shorter where the plan asks for that."""
    return make_account(steps=steps, shortened=epochs if "shorter" in plan else 0)


def test_a_change_that_drops_the_last_batch_is_told_where_the_data_are_shorter():
    def dropped(plan):
        return seeded(plan, seconds=5.0, account=shortened(plan, steps=22 if "shorter" in plan else 24))

    proof, runs = prove(lambda plan: seeded(plan, account=shortened(plan)), dropped)
    assert proof.verdict == "different" and proof.first_difference.detail == "22 instead of 24"
    assert "with a sample less in each epoch" in proof.reason and {} not in runs.plans


def test_a_change_that_fails_where_the_data_are_shorter_is_different():
    def fails(plan):
        short = "shorter" in plan
        return seeded(plan, seconds=5.0, status=int(short), account=None if short else shortened(plan))

    proof, _ = prove(lambda plan: seeded(plan, account=shortened(plan)), fails)
    assert proof.verdict == "different" and proof.first_difference.place == "exit code"


def test_shorter_data_are_compared_where_seeds_cannot_be_changed_too():
    def dropped(plan):
        return make_run(seconds=5.0, account=shortened(plan, steps=22 if "shorter" in plan else 24))

    proof, _ = prove(lambda plan: make_run(account=shortened(plan)), dropped)
    assert proof.verdict == "different" and "seeds" not in proof.reason


@pytest.mark.parametrize("status", [0, 1])
def test_a_side_that_orders_its_data_itself_or_an_original_that_fails_is_compared_with_the_data_as_they_are(status):
    def original(plan):
        return seeded(plan, account=shortened(plan), status=status if "shorter" in plan else 0)

    def changed(plan):
        return seeded(plan, seconds=5.0, account=shortened(plan, epochs=0))

    proof, runs = prove(original, changed)
    assert proof.verdict == "proven" and any("seeds changed by" in line for line in proof.known_by)
    notes = [line for line in proof.known_by if "a sample less" in line]
    assert [line.split(" with")[0] for line in notes] == ["not compared"] * (status == 0)
    assert [plan for plan in runs.plans if (plan.get("seed") or {}).get("shift") and is_watched(plan)]


def by_datasets(plan):
    return bool(plan.get("shorter", {}).get("datasets"))


@pytest.mark.parametrize(("rows", "verdict"), [(15, "different"), (16, "proven"), (14, "proven")])
def test_a_sampler_of_its_own_is_compared_where_datasets_say_that_they_have_less(rows, verdict):
    """The original takes 14 a step then; one that takes 16 as always does not ask the datasets."""

    def original(plan):
        return seeded(
            plan, account=make_account(shortened=int("shorter" in plan), rows=14 if by_datasets(plan) else 16)
        )

    def changed(plan):
        taken = rows if by_datasets(plan) else 16
        return seeded(plan, seconds=5.0, account=make_account(shortened=int(by_datasets(plan)), rows=taken))

    proof, _ = prove(original, changed)
    assert proof.verdict == verdict
    assert any("orders its samples itself" in line for line in proof.known_by) == (rows == 16)


WEIGHTS = "/program/model.pt"


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


COMPUTE = CalledFunction(str(TRAIN), "compute", 3)


def counting(plan, own, others, **given):
    """A run that calls a function so often under the program's own seeds, and so often under others."""
    return seeded(plan, calls={COMPUTE: others if "seed" in plan else own}, **given)


def test_results_that_are_computed_less_often_under_the_programs_own_seeds_are_not_proven():
    proof, _ = prove(lambda plan: counting(plan, 64, 64), lambda plan: counting(plan, 16, 64, seconds=5.0))
    assert proof.verdict == "inconclusive"
    assert "compute (train.py:3) runs 16 times under the program's own seeds, and 64 times under 5" in proof.reason


def test_a_function_that_the_original_too_calls_less_often_there_tells_nothing():
    proof, _ = prove(lambda plan: counting(plan, 16, 64), lambda plan: counting(plan, 16, 64, seconds=5.0))
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


def counted(plan, counts, **given):
    """A run in whose quarters of the steps a function is called so often."""
    return seeded(plan, quarters={CalledFunction(str(TRAIN), "hook", 3): counts} if "reached" in plan else {}, **given)


def test_what_is_called_more_and_more_often_under_all_seeds_alike_is_inconclusive():
    def changed(plan, counts=(10, 30, 50, 70)):
        return counted(plan, counts, seconds=5.0)

    def as_the_data_have_it(plan):
        return changed(plan, (8, 20, 40, 107) if "seed" in plan else (9, 21, 39, 80))

    steady = (40, 40, 40, 40)
    proof, _ = prove(lambda plan: counted(plan, steady), changed)
    assert proof.verdict == "inconclusive" and "hook (train.py:3) is called more and more often" in proof.reason
    assert prove(lambda plan: counted(plan, (10, 30, 50, 70)), changed)[0].verdict == "proven"
    assert prove(lambda plan: counted(plan, steady), as_the_data_have_it)[0].verdict == "proven"


def taking(plan, elements, **given):
    """A run in which an operator takes so many elements in each quarter of the steps."""
    return seeded(
        plan, volume={OperatorCall(str(TRAIN), "add", 3, "cat", 5): elements} if "volume" in plan else {}, **given
    )


def test_an_operator_that_takes_more_and_more_is_inconclusive_unless_one_of_the_original_does():
    def changed(plan):
        return taking(plan, (8, 20, 40, 107) if "seed" in plan else (9, 21, 39, 80), seconds=5.0)

    proof, _ = prove(lambda plan: taking(plan, (40, 40, 40, 40)), changed)
    assert proof.verdict == "inconclusive" and "cat in add (train.py:5) takes more and more" in proof.reason
    assert prove(lambda plan: taking(plan, (10, 30, 50, 70)), changed)[0].verdict == "proven"
    assert prove(lambda plan: counted(plan, (10, 30, 50, 70)), changed)[0].verdict == "proven"


def test_a_way_out_of_the_training_that_no_run_took_is_inconclusive():
    before = b"for batch in loader:\n    step(batch)\n"
    sides = Sides({TRAIN: before}, {TRAIN: before + b"    if loss > best:\n        break\n"})

    def changed(plan):
        return seeded(plan, seconds=5.0, step_lines=frozenset({(str(TRAIN), 2)}))

    proof, _ = prove(seeded, changed, sides)
    assert proof.verdict == "inconclusive" and "train.py:4 (break)" in proof.reason
