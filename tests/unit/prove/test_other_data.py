"""What both sides do with other data and settings than theirs, from runs of programs that are made up."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from made_up_proofs import TRAIN, MadeUp, make_account, make_tensors, prove, seeded

from unstall.prove.judge import Judge, ProofOptions
from unstall.prove.trees import Sides


def reading(plan, *, fails=False, output="loss 0.5\n", which="a", is_text=False, **given):
    """A run that reads its data; where one sample is another it may fail, or print something else."""
    if not {"damaged", "letters", "many"} & set(plan):
        return seeded(plan, account=make_account(batches=[[16, "00"]]), **given)
    told = {"item": which, "is_text": is_text} if which else None
    return seeded(plan, status=int(fails), output=output, changed_data=told, **given)


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
    note = "not compared where a sample of each dataset is its first word: it ends with exit code 1"
    assert (note in proof.known_by) == ("fails" in given)
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


@pytest.mark.parametrize(("part", "where"), [("many", "there are far more samples"),
                                            ("ahead", "each batch is made before the one before it is used")])  # fmt: skip
@pytest.mark.parametrize(("of_original", "verdict"), [(True, "proven"), (False, "inconclusive")])
def test_what_unstall_cannot_do_in_the_original_is_not_compared_and_said(part, where, of_original, verdict):
    def failing(plan, **given):
        return replace(reading(plan, **given), failures=["torch: no such function"] if part in plan else ())

    proof, _ = prove(failing if of_original else reading, lambda plan: failing(plan, seconds=5.0))
    assert proof.verdict == verdict
    note = f"not compared where {where}: unstall itself failed in it (torch: no such function)"
    assert (note in proof.known_by) == of_original


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


@pytest.mark.parametrize(
    ("kind", "words", "verdict"),
    [("foreign", "loss", "proven"), ("foreign", "lost", "inconclusive"), ("all", "loss", "inconclusive")],
)
def test_of_a_text_words_alone_are_compared_where_results_are_close(kind, words, verdict):
    eps = 2.0**-23

    def parsing(plan, scale, output, **given):
        is_it = ("all" if "letters" in plan else plan.get("damaged", {}).get("kind")) == kind
        shift, perturb = plan.get("seed", {}).get("shift"), plan.get("perturb")
        scale *= (2.0 if shift else 1.0) * (1 + (eps if perturb and perturb["seed"] % 2 else -eps if perturb else 0.0))
        run = reading(plan, is_text=True, output=output if is_it else "loss 0.5\n", **given)
        return replace(run, tensors=make_tensors((scale, 2 * scale)))

    proof, _ = prove(
        lambda plan: parsing(plan, 1.0, "loss 0.612\n"),
        lambda plan: parsing(plan, 1 + 2 * eps, f"{words} 0.8\n", seconds=5.0),
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


@pytest.mark.parametrize("make", [seeded, reading])
def test_what_a_proof_takes_is_known_about_before_most_of_it_is_spent(make):
    def lasting(plan, seconds):
        ends_early = plan.get("clock", {}).get("steps")
        return make(plan, seconds=seconds / 2 if ends_early else seconds)

    both = partial(lasting, seconds=10.0), partial(lasting, seconds=5.0)
    proof, runs = prove(*both)
    given_up, before = prove(*both, budget_s=45.0)
    assert (proof.verdict, given_up.verdict) == ("proven", "inconclusive")
    foreseen = given_up.more_s + 45.0 - before.spent_s
    assert 0.8 < foreseen / (runs.spent_s - before.spent_s) < 1.25
