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
from made_up_proofs import SIDES, TRAIN, MadeUp, make_account, make_run, prove, seeded

from unstall.optimize.sameness import ObservedTensor
from unstall.prove.judge import Judge, ProofOptions
from unstall.prove.left_behind.effects import Content

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


def test_an_original_that_does_not_end_after_one_fault_is_compared_after_the_others():
    def original(plan):
        return ending(plan, timed_out=plan.get("fault", {}).get("kind") == "error")

    proof, runs = prove(original, lambda plan: ending(plan, seconds=5.0))
    assert proof.verdict == "proven"
    assert "not compared where a call of the model fails late in the run: the original does not end" in proof.known_by
    assert [plan["fault"]["kind"] for plan in runs.plans if "fault" in plan][:3] == ["error", "interrupt", "interrupt"]
    hidden = {"interrupt": {"fails": 0}}
    proof, _ = prove(
        original, lambda plan: ending(plan, seconds=5.0, **hidden.get(plan.get("fault", {}).get("kind"), {}))
    )
    assert proof.verdict == "different" and "where Ctrl-C ends it late in the run" in proof.reason


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
