"""Which lines of a change are reached, from runs of programs that are made up."""

from __future__ import annotations

import pytest
from made_up_proofs import TRAIN, prove, seeded

from unstall.prove.lines.calls import CalledFunction
from unstall.prove.lines.reached import LOST, LoopLines, Place
from unstall.prove.lines.volume import OperatorCall
from unstall.prove.trees import Sides

OWN_WAY, USUAL = (Place(str(TRAIN), "f", 1, 1, offset) for offset in (2, 4))
COMPUTE = CalledFunction(str(TRAIN), "compute", 3)


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


def test_a_program_that_fails_where_it_is_followed_is_not_proven():
    proof, _ = prove(seeded, lambda plan: seeded(plan, seconds=5.0, status=3 if "reached" in plan else 0))
    assert proof.verdict == "inconclusive" and "exit code 3" in proof.reason


def test_a_program_that_ends_the_following_is_not_proven():
    proof, _ = prove(
        seeded, lambda plan: seeded(plan, seconds=5.0, reached=frozenset({LOST} if "reached" in plan else ()))
    )
    assert proof.verdict == "inconclusive" and "debugger" in proof.reason


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
        return seeded(plan, seconds=5.0, loop_lines=LoopLines(frozenset({(str(TRAIN), 2)})))

    proof, _ = prove(seeded, changed, sides)
    assert proof.verdict == "inconclusive" and "train.py:4 (break)" in proof.reason


READS = b"def read(path):\n    return load(path)\nrows = [read(path) for path in paths]\n"


@pytest.mark.parametrize(("original", "changed", "verdict"), [(1, 0, "different"), (1, 1, "proven"), (0, 0, "proven")])
def test_an_error_in_a_function_that_both_have_must_be_told(original, changed, verdict):
    sides = Sides({TRAIN: READS}, {TRAIN: READS.replace(b"[read(path) for path in paths]", b"fill(read, paths)")})
    read = CalledFunction(str(TRAIN), "read", 1)

    def failing(plan, status, **given):
        if "raised" not in plan:
            return seeded(plan, calls={read: 12}, **given)
        return seeded(plan, status=status, raised=True, **given)

    proof, runs = prove(lambda plan: failing(plan, original), lambda plan: failing(plan, changed, seconds=5.0), sides)
    assert proof.verdict == verdict
    wanted = {"path": str(TRAIN), "name": "read", "call": 2}
    assert [plan["raised"] for plan in runs.plans if "raised" in plan] == [wanted] * (1 + bool(original))
    if verdict == "different":
        assert proof.reason.endswith("where a call of read (train.py) fails: end of the run: it ends with exit code 0")


@pytest.mark.parametrize(("status", "verdict"), [(0, "inconclusive"), (1, "proven")])
def test_an_error_in_a_function_of_the_change_must_be_told(status, verdict):
    sides = Sides({TRAIN: READS}, {TRAIN: READS + b"def fill(rows):\n    return rows\n"})

    def changed(plan):
        calls = {CalledFunction(str(TRAIN), "fill", 4): 1}
        if "raised" not in plan:
            return seeded(plan, seconds=5.0, calls=calls)
        return seeded(plan, seconds=5.0, status=status, raised=True)

    proof, runs = prove(seeded, changed, sides)
    assert proof.verdict == verdict
    assert [plan["raised"]["call"] for plan in runs.plans if "raised" in plan] == [1]
    if verdict == "inconclusive":
        assert (
            proof.reason
            == "it ends with exit code 0 where a call of fill (train.py) fails: the error is told to nobody"
        )


def test_a_validation_that_takes_all_that_there_was_so_far_is_inconclusive():
    call = OperatorCall(str(TRAIN), "validate", 3, "pad_sequence", 5)

    def validating(plan, counts, **given):
        return seeded(plan, validations={call: counts} if "volume" in plan else {}, **given)

    proof, _ = prove(
        lambda plan: validating(plan, (4, 4, 4, 4)), lambda plan: validating(plan, (4, 8, 12, 16), seconds=5.0)
    )
    assert proof.verdict == "inconclusive" and "takes more elements in each validation" in proof.reason
    growing = (4, 8, 12, 16)
    assert (
        prove(lambda plan: validating(plan, growing), lambda plan: validating(plan, growing, seconds=5.0))[0].verdict
        == "proven"
    )


SPANS = b'def spans(tags):\n    """Kind, first and last word."""\n    return [(tag, 0, 1) for tag in tags]\n'


@pytest.mark.parametrize(("gives", "verdict"), [([2, 3], "inconclusive"), ([1, 2], "proven")])
def test_a_function_that_keeps_its_words_and_gives_something_else_is_inconclusive(gives, verdict):
    sides = Sides({TRAIN: SPANS}, {TRAIN: SPANS.replace(b"1)", b"2)")})

    def giving(plan, given, **more):
        results = {(str(TRAIN), "spans", "00"): given} if "results" in plan else {}
        return seeded(plan, results=results, **more)

    proof, _ = prove(lambda plan: giving(plan, [1, 2]), lambda plan: giving(plan, gives, seconds=5.0), sides)
    assert proof.verdict == verdict
    assert verdict == "proven" or proof.reason.startswith("spans (train.py) gives something else")
