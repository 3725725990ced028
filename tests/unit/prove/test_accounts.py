"""What the accounts of two whole runs say beside their counts."""

from __future__ import annotations

import pytest

from unstall.prove.accounts import behaves_otherwise, changed_at_the_end

USUAL = {"signals": [4, 4], "cores": [2, 2], "shared": 0, "unsettled": 0, "most_threads": 3}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"signals": [4, 5]}, "ignores or handles signals"),
        ({"cores": [1, 1]}, "fewer cores"),
        ({"shared": 12}, "12 bytes in shared memory"),
        ({"most_threads": 65}, "65 threads at once now and then, and the original 3"),
    ],
)
def test_what_a_change_does_beside_its_results_is_said_unless_the_original_does_it(given, words):
    changed = {**USUAL, **given}
    assert words in behaves_otherwise(USUAL, changed)
    assert behaves_otherwise(changed, changed) is None and behaves_otherwise(USUAL, USUAL) is None


def test_parameters_that_are_changed_after_the_last_step_are_other_values():
    difference = changed_at_the_end(USUAL, {**USUAL, "unsettled": 3})
    assert difference.kind == "values" and difference.detail.startswith("3 of them")
    assert changed_at_the_end({**USUAL, "unsettled": 1}, {**USUAL, "unsettled": 3}) is None
