"""How both sides spell what is no number."""

from __future__ import annotations

import pytest
from made_up_proofs import prove, seeded

from unstall.prove.conditions.diverged import PLAN, first_difference
from unstall.prove.left_behind.effects import STDOUT, Content, Effects


def effects(**texts):
    return Effects(0, "", {path: Content.of(text.encode()) for path, text in texts.items()})


@pytest.mark.parametrize(
    ("before", "after", "is_other"),
    [
        ('{"loss": NaN}', '{"loss": nan}', True),
        ('{"loss": NaN}', '{"loss": null}', True),
        ("loss inf", "loss Infinity", True),
        ("loss nan, f1 0.0", "loss nan, f1 nan", False),
        ("loss nan", "loss 0.5", False),
        ("loss 0.5", "loss nan", False),
        ("nan", "nan of finance, nanosecond", False),
    ],
)
def test_a_spelling_that_the_original_does_not_have_is_different(before, after, is_other):
    difference = first_difference(effects(log=before), effects(log=after))
    assert bool(difference) == is_other
    if is_other:
        assert difference.place == "log" and "which the original spells" in difference.detail


def test_each_file_has_its_own_spelling():
    before = effects(**{STDOUT: "loss nan", "log.jsonl": "NaN"})
    assert first_difference(before, before) is None
    assert first_difference(before, effects(**{STDOUT: "loss nan"})) is None
    assert str(first_difference(before, effects(**{STDOUT: "loss nan", "log.jsonl": "nan"}))) == (
        "log.jsonl: 'nan', which the original spells 'NaN'"
    )


def diverging(plan, *, output="loss nan\n", status=0, timed_out=False, **given):
    return seeded(
        plan, **({"output": output, "status": status, "timed_out": timed_out} if is_astray(plan) else {}), **given
    )


def is_astray(plan):
    return plan.get("stress") == PLAN["stress"] and "clock" not in plan


@pytest.mark.parametrize(
    ("changed", "verdict", "reason"),
    [
        ({}, "proven", ""),
        ({"output": "loss NaN\n"}, "different", "'NaN', which the original spells 'nan'"),
        ({"status": 1}, "inconclusive", "it ends with exit code 1, and the original with 0, where a model gives"),
        ({"timed_out": True}, "inconclusive", "it does not end where a model gives"),
    ],
)
def test_both_must_end_a_training_that_has_gone_astray_in_the_same_way(changed, verdict, reason):
    proof, _ = prove(diverging, lambda plan: diverging(plan, seconds=5.0, **changed))
    assert proof.verdict == verdict and reason in proof.reason


def test_what_the_original_does_not_end_says_nothing():
    proof, _ = prove(lambda plan: diverging(plan, timed_out=True), lambda plan: diverging(plan, seconds=5.0, status=1))
    assert proof.verdict == "proven"
