"""How runs end under a condition, and when that tells nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up_proofs import make_run

from unstall.prove.conditions import ends


def asserting():
    run = make_run(status=1)
    return replace(run, effects=replace(run.effects, last_line="AssertionError: no"))


@pytest.mark.parametrize(
    ("original", "changed", "words"),
    [
        (make_run(), make_run(), ""),
        (make_run(status=1), make_run(status=120), ""),
        (make_run(), make_run(status=1), "it ends with exit code 1, and the original with 0,"),
        (make_run(status=1), make_run(), "it ends with exit code 0, and the original with 1,"),
        (make_run(), make_run(status=-9, timed_out=True), "it does not end"),
        (make_run(status=1), asserting(), "it ends with an assertion, which Python leaves out with -O,"),
        (asserting(), asserting(), ""),
    ],
)
def test_another_end_is_told(original, changed, words):
    assert ends.otherwise(original, changed) == words


def test_an_error_may_be_an_answer_and_no_end_is_none():
    fails, hangs = make_run(status=3), make_run(status=-9, timed_out=True)
    assert ends.excuse_of_errors(make_run(), fails) == "it ends with exit code 3"
    assert ends.excuse_of_errors(make_run(), hangs) == ends.excuse_of_errors(make_run(), make_run()) == ""
    assert ends.no_excuse(make_run(), fails) == ""
