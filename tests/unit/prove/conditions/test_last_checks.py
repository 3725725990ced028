"""How both sides end where things go otherwise, from runs of programs that are made up."""

from __future__ import annotations

import io
import itertools
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from made_up_proofs import SIDES, TRAIN, MadeUp, make_account, make_run, make_tensors, prove, seeded

from unstall.optimize.sameness import ObservedTensor
from unstall.prove.judge import Judge, ProofOptions
from unstall.prove.left_behind.effects import Content
from unstall.prove.trees import Sides

WEIGHTS = Path("/program/model.pt")


def ending(plan, *, fails=1, saved=b"\0weights", left=(), **given):
    """A run that ends so where a call fails; a model is saved by then."""
    status = fails if "fault" in plan else 0
    run = seeded(plan, status=status, **given)
    files = {"/program/model.pt": Content.of(saved if status or "fault" in plan else b"\0weights")}
    files |= {str(path): Content.of(b"1\n") for path in left if "fault" in plan}
    return replace(run, effects=replace(run.effects, contents={**run.effects.contents, **files}))


def test_both_end_alike_where_a_call_of_the_model_fails():
    proof, runs = prove(ending, lambda plan: ending(plan, seconds=5.0))
    assert proof.verdict == "proven" and any("fails late in the run" in line for line in proof.known_by)
    faults = [plan["fault"] for plan in runs.plans if "fault" in plan]
    wanted = [{"call": 18, "kind": "error"}, {"call": 18, "kind": "interrupt"}, {"call": 1, "kind": "full"}]
    wanted = [*wanted, {"call": 18, "kind": "kill"}]
    wanted = [{**fault, "mode": "train"} for fault in wanted]
    wanted.insert(3, {"kind": "cut", "bytes": 4})
    assert faults == [fault for fault in wanted for _ in range(2)]


@pytest.mark.parametrize(("others", "verdict"), [([b"\0old"], "different"), ([b"\0old", b"\0new"], "proven")])
def test_numbers_that_are_saved_by_then_must_be_the_same_unless_the_originals_vary(others, verdict):
    varying = itertools.cycle([b"\0weights", *others[1:]])

    def original(plan):
        return ending(plan, saved=next(varying) if "fault" in plan else b"")

    proof, _ = prove(original, lambda plan: ending(plan, seconds=5.0, saved=others[0]))
    assert proof.verdict == verdict
    if verdict == "different":
        assert str(proof.first_difference) == "/program/model.pt: holds other numbers"


def validating(plan, **given):
    calls = make_account()["calls"] + [["eval", 16, "float32", "01"]] * 5
    return ending(plan, **given, account=make_account(calls=calls))


def test_an_error_in_validation_that_is_hidden_is_different():
    def changed(plan):
        is_hidden = plan.get("fault", {}).get("mode") == "eval"
        return validating(plan, seconds=5.0, **({"fails": 0} if is_hidden else {}))

    proof, runs = prove(validating, changed)
    assert proof.verdict == "different" and "where a call of the model fails in validation: exit code" in proof.reason
    assert {"call": 2, "mode": "eval", "kind": "error"} in [plan.get("fault") for plan in runs.plans]


@pytest.mark.parametrize(("fails", "verdict"), [(0, "different"), (120, "proven")])
def test_a_disk_that_fills_up_in_the_middle_of_a_file_must_be_an_error_in_both(fails, verdict):
    def changed(plan):
        is_cut = plan.get("fault", {}).get("kind") == "cut"
        return ending(plan, seconds=5.0, **({"fails": fails, "saved": b""} if is_cut else {}))

    assert prove(ending, changed)[0].verdict == verdict


@pytest.mark.parametrize(("lines", "verdict"), [(0, "different"), (1, "different"), (2, "proven")])
def test_lines_that_are_withheld_until_the_end_are_missed_where_something_goes_wrong(lines, verdict):
    def printing(plan, lines, **given):
        return ending(plan, output="loss 0.5\n" * (lines if "fault" in plan else 4), **given)

    proof, _ = prove(lambda plan: printing(plan, 3), lambda plan: printing(plan, lines, seconds=5.0))
    assert proof.verdict == verdict
    if lines < 2:
        assert proof.first_difference.detail == f"{lines} lines by then instead of 3"


@pytest.mark.parametrize(("detail", "plan_key"), [("it is 27.6, and the original's 900", "factor"), ("number", "nan")])
def test_a_loss_that_hides_a_training_gone_astray_is_different(detail, plan_key):
    def losing(plan, loss, **given):
        values = np.array([loss if plan_key in plan.get("stress", {}) else 0.5], np.float32).tobytes()
        tensors = [ObservedTensor("loss.0", 0, "float32", (1,), values, values)]
        return make_run(tensors=tensors, **given)

    losses = {"factor": (900.0, 27.6), "nan": (np.nan, 0.1)}[plan_key]
    proof, _ = prove(lambda plan: losing(plan, losses[0]), lambda plan: losing(plan, losses[1], seconds=5.0))
    assert proof.verdict == "different" and detail in proof.first_difference.detail


def reading(plan, *, fails=False, output="loss 0.5\n", which="a", is_text=False, **given):
    """A run that reads its data; where one sample is another it may fail, or print something else."""
    if not {"damaged", "many"} & set(plan):
        return seeded(plan, account=make_account(batches=[[16, "00"]]), **given)
    told = {"item": which, "is_text": is_text} if which else None
    return seeded(plan, status=int(fails), output=output, damaged=told, **given)


@pytest.mark.parametrize(
    ("original", "changed", "reason"),
    [
        ({"fails": True}, {}, "it ends with exit code 0, and the original with 1, where a sample is damaged"),
        ({"fails": True}, {"fails": True}, None),
        ({"output": "loss 0.7\n"}, {}, "it does not do the same (standard output, line 1: 0.5 instead of 0.7) where"),
        ({"fails": True}, {"which": "b"}, None),
        ({"which": None, "fails": True}, {"which": None}, None),
    ],
)
def test_what_a_change_does_with_a_sample_that_is_another(original, changed, reason):
    proof, _ = prove(lambda plan: reading(plan, **original), lambda plan: reading(plan, seconds=5.0, **changed))
    assert proof.verdict == ("proven" if reason is None else "inconclusive")
    assert reason is None or proof.reason.startswith(reason)
    assert any("makes its datasets otherwise" in line for line in proof.known_by) == (changed.get("which") == "b")


@pytest.mark.parametrize(
    ("given", "verdict", "known"),
    [
        ({"output": "loss 0.7\n"}, "inconclusive", ""),
        ({"fails": True}, "inconclusive", ""),
        ({}, "proven", "exit code, standard output and files where there are far more samples"),
        (
            {"timed_out": True},
            "proven",
            "not compared where there are far more samples: it takes too much time or memory",
        ),
    ],
)
def test_far_more_samples_must_be_the_same_to_both_if_the_change_can_take_them(given, verdict, known):
    def changed(plan):
        is_it = plan.get("many") == {}
        return reading(plan, seconds=5.0, **(given if is_it else {}))

    proof, _ = prove(reading, changed)
    assert proof.verdict == verdict and (known in proof.known_by or not known)
    assert verdict == "proven" or proof.reason.endswith("where there are far more samples")


@pytest.mark.parametrize(
    ("given", "verdict"), [({"output": "loss 0.7\n"}, "inconclusive"), ({"fails": True}, "proven"), ({}, "proven")]
)
def test_a_short_sample_must_be_the_same_or_an_error(given, verdict):
    def short(plan, **given):
        is_it = plan.get("damaged", {}).get("kind") == "short"
        return reading(plan, is_text=True, **(given if is_it else {}))

    proof, _ = prove(short, lambda plan: replace(short(plan, **given), seconds=5.0))
    assert proof.verdict == verdict
    assert verdict == "proven" or "a sample of each dataset is its first word" in proof.reason


@pytest.mark.parametrize(("lasts", "verdict"), [(("ValueError: no", "AssertionError"), "inconclusive"),
                                                (("AssertionError", "AssertionError: no"), "proven"),
                                                (("AssertionError", "ValueError"), "proven")])  # fmt: skip
def test_an_error_that_an_assertion_alone_tells_is_doubted(lasts, verdict):
    def ending_by(plan, last):
        run = reading(plan, fails=plan.get("damaged", {}).get("kind") == "spoiled")
        return replace(run, effects=replace(run.effects, last_line=last if run.effects.status else ""))

    original, changed = lasts
    proof, _ = prove(
        lambda plan: ending_by(plan, original), lambda plan: replace(ending_by(plan, changed), seconds=5.0)
    )
    assert proof.verdict == verdict
    assert verdict == "proven" or "an assertion, which Python leaves out with -O" in proof.reason


@pytest.mark.parametrize(("output", "verdict"), [("loss 0.7\n", "inconclusive"), ("loss 0.5\n", "proven")])
def test_batches_that_are_made_ahead_must_be_the_same(output, verdict):
    def changed(plan):
        return reading(plan, seconds=5.0) if "ahead" not in plan else seeded(plan, seconds=5.0, output=output)

    proof, _ = prove(reading, changed)
    assert proof.verdict == verdict
    assert verdict == "proven" or proof.reason.endswith("where each batch is made before the one before it is used")


def test_a_change_without_a_loader_is_not_asked_for_batches_made_elsewhere():
    """Where the main process draws their random numbers no more, the original itself does something else."""

    def original(plan):
        is_elsewhere = {"ahead", "loading"} & set(plan)
        return seeded(plan, output="loss 0.7\n") if is_elsewhere else reading(plan)

    proof, runs = prove(original, lambda plan: seeded(plan, seconds=5.0, account=make_account()))
    assert not any({"ahead", "loading"} & set(plan) for plan in runs.plans)
    assert proof.verdict == "proven"


@pytest.mark.parametrize(
    ("original", "changed", "reason"),
    [
        ({}, {}, ""),
        ({}, {"output": "loss 0.7\n"}, "it does not do the same (standard output, line 1: 0.7 instead of 0.5)"),
        ({}, {"status": 1}, "it ends with exit code 1, and the original with 0,"),
        ({}, {"timed_out": True}, "it does not end"),
        ({"status": 1}, {"status": 1}, ""),
        ({"timed_out": True}, {"timed_out": True}, ""),
    ],
)
def test_a_loader_worker_must_be_able_to_make_what_the_main_process_does(original, changed, reason):
    def loading(given, plan):
        if "loading" not in plan:
            return reading(plan)
        run = seeded(plan, **{name: value for name, value in given.items() if name != "timed_out"})
        return replace(run, timed_out=given.get("timed_out", False))

    proof, _ = prove(partial(loading, original), lambda plan: replace(loading(changed, plan), seconds=5.0))
    assert proof.verdict == ("inconclusive" if reason else "proven")
    assert reason in proof.reason and (not reason or proof.reason.endswith("where a loader worker makes the batches"))


@pytest.mark.parametrize(
    ("original", "changed", "verdict", "is_told"),
    [
        ({}, {"output": "loss 0.7\n"}, "inconclusive", False),
        ({"status": 1}, {"output": "loss 0.7\n"}, "proven", False),
        ({}, {"status": 1}, "proven", True),
        ({}, {}, "proven", False),
    ],
)
def test_a_loader_worker_that_is_no_fork_makes_the_same_or_an_error(original, changed, verdict, is_told):
    def loading(given, plan):
        is_it = plan.get("loading", {}).get("start") == "spawn"
        return seeded(plan, **given) if is_it else reading(plan)

    where = "where a loader worker that is no fork makes the batches"
    proof, _ = prove(partial(loading, original), lambda plan: replace(loading(changed, plan), seconds=5.0))
    assert proof.verdict == verdict and (verdict == "proven" or proof.reason.endswith(where))
    assert (f"not compared {where}: it ends with exit code 1" in proof.known_by) == is_told


@pytest.mark.parametrize(("scale", "verdict"), [(1.0, "inconclusive"), (1 + 2**-22, "proven")])
def test_a_longer_training_is_compared_where_results_are_exact(scale, verdict):
    def training(plan, output, scale, **given):
        shift, perturb = plan.get("seed", {}).get("shift"), plan.get("perturb")
        off = (2.0**-23 if perturb["seed"] % 2 else -(2.0**-23)) if perturb else 0.0
        is_it = plan.get("many", {}).get("times") == 2
        run = reading(plan, output=output if is_it else "loss 0.5\n", **given)
        return replace(
            run, tensors=make_tensors((scale * (1 + off) * (2.0 if shift else 1.0), 2.0 * scale * (1 + off)))
        )

    original = partial(training, output="loss 0.5\n", scale=1.0)
    proof, _ = prove(original, partial(training, output="loss 0.7\n", scale=scale, seconds=5.0))
    assert proof.verdict == verdict
    assert verdict == "inconclusive" or "exit code where epochs are twice as long" in proof.known_by


class OtherNumbers(MadeUp):
    """The plan says which number the file has: the one after the first ``=``."""

    def run(self, files, plan, **given):
        before, number = self.before, files[TRAIN].split()[2]
        self.before = files[TRAIN] if files[TRAIN].endswith(self.before.splitlines()[-1] + b"\n") else b""
        try:
            return super().run(files, {**plan, "number": float(number)}, **given)
        finally:
            self.before = before


@pytest.mark.parametrize(
    ("original", "changed", "verdict"),
    [
        ({}, {"output": "loss 0.7\n"}, "inconclusive"),
        ({"fails": True}, {}, "proven"),
        ({"output": "loss 0.7\n"}, {"output": "loss 0.7\n"}, "proven"),
    ],
)
def test_both_do_the_same_with_other_constants(original, changed, verdict):
    def setting(given, plan, seconds):
        run = reading(plan, seconds=seconds)
        return run if plan["number"] == 0.5 else reading({**plan, "damaged": {}}, seconds=seconds, **given)

    sides = Sides({TRAIN: b"LEAST = 0.5\na = LEAST\n"}, {TRAIN: b"LEAST = 0.5\na = 0.0 + LEAST\n"})
    runs = OtherNumbers(partial(setting, original, seconds=10.0), partial(setting, changed, seconds=5.0), sides)
    proof = Judge(runs, sides, ProofOptions(), clock=lambda: runs.spent_s).prove()
    assert proof.verdict == verdict
    assert verdict == "proven" or proof.reason.endswith(" with LEAST 0.62 times as large")
    assert any(plan["number"] < 0.5 for plan in runs.plans)


@pytest.mark.parametrize(
    ("given", "verdict"), [({"output": "loss 0.7\n"}, "inconclusive"), ({"fails": True}, "proven"), ({}, "proven")]
)
def test_a_limit_that_no_run_comes_to_is_none_where_it_is_smaller(given, verdict):
    def limited(plan):
        is_smaller = plan["number"] == 8
        return reading(
            {**plan, **({"damaged": {}} if is_smaller else {})}, seconds=5.0, **(given if is_smaller else {})
        )

    sides = Sides({TRAIN: b"a = 1\nb = []\n"}, {TRAIN: b"a = 64\nb = deque(maxlen=a)\n"})
    runs = OtherNumbers(lambda plan: reading(plan), limited, sides)
    proof = Judge(runs, sides, ProofOptions(), clock=lambda: runs.spent_s).prove()
    assert proof.verdict == verdict
    where = "with limits that only it has made smaller (8 for 64 in train.py:1)"
    assert verdict == "proven" or proof.reason.endswith(where)
    assert any(plan["number"] == 8 for plan in runs.plans)


@pytest.mark.parametrize(("ends", "verdict"), [(False, "inconclusive"), (True, "proven")])
def test_a_worker_that_is_forked_once_the_data_were_used_must_end(ends, verdict):
    def changed(plan):
        run = reading(plan, seconds=5.0)
        return run if ends or "after" not in plan.get("loading", {}) else replace(run, timed_out=True)

    proof, _ = prove(reading, changed)
    assert proof.verdict == verdict
    told = "it does not end where a loader worker makes the batches after the first epoch"
    assert verdict == "proven" or proof.reason == told


def summed(plan, **given):
    """A run that keeps pictures by their checksum: where all have the same, all are one picture."""
    return seeded(plan, **(given if "colliding" in plan else {}))


@pytest.mark.parametrize(
    ("line", "original", "changed", "verdict"),
    [
        ("key = crc32(text)", {}, {"output": "loss 0.7\n"}, "inconclusive"),
        ("key = crc32(text)", {"status": 1}, {"output": "loss 0.7\n"}, "proven"),
        ("key = crc32(text)", {}, {}, "proven"),
        ("key = text", {}, {"output": "loss 0.7\n"}, "proven"),
    ],
)
def test_checksums_that_are_the_same_are_tried_on_a_change_that_goes_by_them(line, original, changed, verdict):
    sides = Sides({TRAIN: b"key = None\n"}, {TRAIN: line.encode()})
    made = partial(summed, **original), lambda plan: replace(summed(plan, **changed), seconds=5.0)
    proof, runs = prove(*made, sides=sides)
    assert proof.verdict == verdict
    assert any("colliding" in plan for plan in runs.plans) == ("crc32" in line)


@pytest.mark.parametrize(("fails", "verdict"), [(True, "proven"), (False, "inconclusive")])
def test_a_number_between_is_compared_where_the_original_takes_it(fails, verdict):
    def between(plan, fails, output, **given):
        is_it = plan.get("damaged", {}).get("kind") == "between"
        return reading(plan, fails=fails and is_it, output=output if is_it else "loss 0.5\n", **given)

    proof, _ = prove(
        lambda plan: between(plan, fails, "loss 0.6\n"), lambda plan: between(plan, False, "loss 0.7\n", seconds=5.0)
    )
    assert proof.verdict == verdict and (fails or "where a number of a sample is no whole one" in proof.reason)


@pytest.mark.parametrize(("words", "verdict"), [("loss", "proven"), ("lost", "inconclusive")])
def test_of_texts_words_alone_are_compared_where_results_are_close(words, verdict):
    eps = 2.0**-23

    def parsing(plan, scale, output, **given):
        is_it = plan.get("damaged", {}).get("kind") == "foreign"
        shift, perturb = plan.get("seed", {}).get("shift"), plan.get("perturb")
        scale *= (2.0 if shift else 1.0) * (1 + (eps if perturb and perturb["seed"] % 2 else -eps if perturb else 0.0))
        run = reading(plan, is_text=True, output=output if is_it else "loss 0.5\n", **given)
        return replace(run, tensors=make_tensors((scale, 2 * scale)))

    proof, _ = prove(
        lambda plan: parsing(plan, 1.0, "loss 0.612\n"),
        lambda plan: parsing(plan, 1 + 2 * eps, f"{words} 0.613\n", seconds=5.0),
    )
    assert (proof.verdict, proof.sameness) == (verdict, "close")


@pytest.mark.parametrize(("is_text", "verdict"), [(True, "inconclusive"), (False, "proven")])
def test_a_text_with_other_letters_is_compared_where_there_are_texts(is_text, verdict):
    def parsing(plan, output, **given):
        is_it = plan.get("damaged", {}).get("kind") == "foreign"
        return reading(plan, is_text=is_text, output=output if is_it else "loss 0.5\n", **given)

    proof, runs = prove(lambda plan: parsing(plan, "loss 0.6\n"), lambda plan: parsing(plan, "loss 0.7\n", seconds=5.0))
    assert proof.verdict == verdict
    assert is_text == ("where a text has other letters and signs than usual" in proof.reason)
    assert is_text == any(plan.get("damaged", {}).get("kind") == "joined" for plan in runs.plans)


def writing(plan, here, *, elsewhere, **given):
    """A run that writes a file into its working folder; where it is started in another, there or not."""
    folder = plan["elsewhere"]["folder"] if "elsewhere" in plan and elsewhere else str(here)
    run = seeded(plan, **given)
    contents = {**run.effects.contents, f"{folder}/model.pt": Content.of(b"\0weights")}
    return replace(run, effects=replace(run.effects, contents=contents))


@pytest.mark.parametrize(
    ("original", "changed", "verdict"), [(True, False, "different"), (False, False, "proven"), (True, True, "proven")]
)
def test_files_are_written_into_the_folder_in_which_it_is_started(tmp_path, monkeypatch, original, changed, verdict):
    monkeypatch.chdir(tmp_path)
    proof, runs = prove(
        lambda plan: writing(plan, tmp_path, elsewhere=original),
        lambda plan: writing(plan, tmp_path, elsewhere=changed, seconds=5.0),
    )
    assert proof.verdict == verdict
    assert sum("elsewhere" in plan for plan in runs.plans) == 1 + (not changed), "the original where that decides"
    if verdict == "different":
        assert str(proof.first_difference) == "model.pt: is not written"


@pytest.mark.parametrize(("original", "verdict"), [(b"\0weights", "different"), (b"\0others", "proven")])
def test_files_that_are_written_there_hold_the_same_as_usual(tmp_path, monkeypatch, original, verdict):
    monkeypatch.chdir(tmp_path)

    def holding(plan, content, **given):
        run = writing(plan, tmp_path, elsewhere=True, **given)
        contents = {
            path: Content.of(content) if "elsewhere" in plan and path.endswith(".pt") else each
            for path, each in run.effects.contents.items()
        }
        return replace(run, effects=replace(run.effects, contents=contents))

    proof, _ = prove(lambda plan: holding(plan, original), lambda plan: holding(plan, b"\0none", seconds=5.0))
    assert proof.verdict == verdict


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
    assert {plan["fault"]["kind"] for plan in runs.plans if "fault" in plan} == {"error", "interrupt", "kill"}


@pytest.mark.parametrize(
    ("original_s", "changed_s", "verdict"), [(0.1, 12.1, "inconclusive"), (12.1, 12.1, "proven"), (0.1, 5.2, "proven")]
)
def test_processes_that_do_not_notice_that_the_program_was_killed(original_s, changed_s, verdict):
    def killed(plan, outlived_s, **given):
        is_killed = plan.get("fault", {}).get("kind") == "kill"
        assert plan.get("outlives") == ({"seconds": 12.0} if is_killed else None)
        return ending(plan, outlived_s=outlived_s if is_killed else 0.0, **given)

    proof, _ = prove(lambda plan: killed(plan, original_s), lambda plan: killed(plan, changed_s, seconds=5.0))
    assert proof.verdict == verdict
    if verdict == "inconclusive":
        assert proof.reason.startswith("a process of it goes on for 12 s and more where it is killed late in the run")


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


@pytest.mark.parametrize(("folder", "verdict"), [("", "different"), ("/tmp", "proven")])
def test_a_text_that_a_failed_run_leaves_in_the_next_ones_way(tmp_path, monkeypatch, folder, verdict):
    monkeypatch.chdir(tmp_path)
    left = [f"{folder or tmp_path}/rows.spool"]
    proof, _ = prove(ending, lambda plan: ending(plan, seconds=5.0, left=left))
    assert proof.verdict == verdict
    if verdict == "different":
        assert str(proof.first_difference).endswith("rows.spool: is left, which it was not")
    assert (
        prove(lambda plan: ending(plan, left=left), lambda plan: ending(plan, seconds=5.0, left=left))[0].verdict
        == "proven"
    )


@pytest.mark.parametrize(("fails", "verdict"), [(0, "different"), (1, "proven")])
def test_a_text_for_which_there_is_no_room_must_be_an_error_in_both(fails, verdict):
    def writing(plan, fails=1, **given):
        lacks = plan.get("fault", {}).get("kind") == "no-room"
        run = ending(plan, fails=fails if lacks else 1, **given)
        texts = {f"/program/{name}.csv": Content.of(b"1\n") for name in "abc"}
        return replace(run, effects=replace(run.effects, contents={**run.effects.contents, **texts}))

    proof, runs = prove(writing, lambda plan: writing(plan, fails, seconds=5.0))
    assert proof.verdict == verdict
    lacking = {plan["fault"]["path"] for plan in runs.plans if plan.get("fault", {}).get("kind") == "no-room"}
    assert lacking == ({"/program/a.csv"} if verdict == "different" else {"/program/a.csv", "/program/b.csv"})
    assert verdict == "proven" or "where the disk has no room for a.csv: exit code" in proof.reason


def test_an_error_that_is_told_to_nobody_is_different():
    def silent(plan):
        run = ending(plan, seconds=5.0)
        return replace(run, effects=replace(run.effects, last_line=""))

    proof, _ = prove(ending, silent)
    assert proof.verdict == "different" and proof.first_difference.place == "standard error"


class Finding(MadeUp):
    """Its sides are given what of an earlier run's weights they find, too."""

    def run(self, files, plan, *, timeout, keeps_files=False):
        side = self.original if files[TRAIN] == self.before else self.changed
        run = side(plan, files.get(WEIGHTS))
        self.plans.append(plan)
        self.spent_s += run.seconds
        return run if keeps_files else replace(run, files=None)


def kept(plan, found, *, keeps, **given):
    """A run that leaves the checkpoint of an earlier training where that one was better: its last byte says how good."""
    own = bytes([5 if plan.get("seed") else 3])
    better = max(found, own) if found and keeps else own
    run = seeded(plan, **given, files={WEIGHTS: own})
    contents = dict(run.effects.contents)
    if better != found:  # else it is as it was found
        contents[str(WEIGHTS)] = Content.of(better)
    return replace(run, effects=replace(run.effects, contents=contents))


@pytest.mark.parametrize(("original_keeps", "verdict"), [(False, "different"), (True, "proven")])
def test_a_result_of_another_training_that_is_left_in_place_is_different(original_keeps, verdict):
    runs = Finding(
        lambda plan, found: kept(plan, found, keeps=original_keeps),
        lambda plan, found: kept(plan, found, keeps=True, seconds=5.0),
    )
    proof = Judge(runs, SIDES, ProofOptions(), clock=lambda: runs.spent_s).prove()
    assert proof.verdict == verdict
    if verdict == "different":
        assert "where a training with other seeds has left its files" in proof.reason


def test_files_that_every_run_writes_anew_are_the_same_over_those_of_another_training():
    runs = Finding(*(partial(kept, keeps=False, seconds=seconds) for seconds in (10.0, 5.0)))
    proof = Judge(runs, SIDES, ProofOptions(), clock=lambda: runs.spent_s).prove()
    assert proof.verdict == "proven"
    assert "standard output and files where a training with other seeds has left its files" in proof.known_by


@pytest.mark.parametrize(
    ("original", "changed", "given", "verdict"),
    [
        (2e6, 120e6, {}, "inconclusive"),
        (60e6, 120e6, {}, "proven"),  # the original takes it too
        (0.0, 30e6, {}, "proven"),
        (0.0, 120e6, {"fails": True}, "proven"),  # the original does not take such a sample
        (0.0, 120e6, {"is_text": False}, "proven"),
    ],
)
def test_memory_that_one_very_long_text_multiplies_is_inconclusive(original, changed, given, verdict):
    def padding(plan, rise, is_text=True, fails=False, **more):
        is_longest = plan.get("damaged", {}).get("kind") == "longest"
        run = reading(plan, is_text=is_text, fails=fails and is_longest, **more)
        return replace(run, memory_bytes=300e6 + (rise if is_longest else 0.0))

    proof, _ = prove(
        lambda plan: padding(plan, original, **given),
        lambda plan: padding(plan, changed, is_text=given.get("is_text", True), seconds=5.0),
    )
    assert proof.verdict == verdict
    if verdict == "inconclusive":
        assert proof.reason == (
            "with one sample 200 times as long as usual it takes 120 MB more, and the original 2 MB"
        )
