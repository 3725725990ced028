"""Functions that keep their name, arguments and words, and give something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.child.trial.results import OVERWRITTEN, REARRANGED
from unstall.prove.lines.results import alike, first_other, plan_of
from unstall.prove.lines.sources import Change
from unstall.prove.trees import Sides

METRICS = Path("/program/metrics.py")
BEFORE = '''\
def spans(tags):
    """Kind, first and last word of each."""
    return [(tag, 0, 1) for tag in tags]

def bare(tags):
    return tags
'''


def functions_of(old, new):
    sides = Sides({METRICS: BEFORE.encode()}, {METRICS: BEFORE.replace(old, new).encode()})
    return plan_of(Change.of(sides))


def test_functions_with_words_whose_body_is_another_are_looked_at():
    assert functions_of("0, 1", "0, 2") == {"results": {"functions": {str(METRICS): ["spans"]}}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return tags", "return [*tags]"),
        ("spans(tags)", "spans(tags, last=1)"),
        ("Kind, first and last word", "Kind, first word and the one after the last"),
        ("def spans", "def spans_of"),
        ("(tag, 0, 1)", "(tag, 0, 1)  # kept"),
    ],
)
def test_those_that_promise_something_else_or_nothing_and_those_that_are_as_they_were_are_not(old, new):
    assert functions_of(old, new) == {}


GIVEN = (str(METRICS), "spans", "00")


@pytest.mark.parametrize(
    ("own", "again", "changed", "is_other"),
    [
        ([["PER", 0, 1]], [["PER", 0, 1]], [["PER", 0, 2]], True),
        ([1.0], [1.0], [1.00001], False),
        ([0.7], [0.2], [0.9], False),  # random numbers
        ([1, 2], [1, 2], [1], True),
    ],
)
def test_one_that_gives_something_else_for_the_same_is_named(own, again, changed, is_other):
    found = first_other({GIVEN: own}, {GIVEN: again}, {GIVEN: changed})
    assert found == ("spans (metrics.py) gives something else than it did for the same arguments" if is_other else None)
    assert first_other({GIVEN: own}, {}, {GIVEN: changed}) == found or own == [0.7]
    assert first_other({GIVEN: own}, {GIVEN: again}, {}) is None


def test_one_that_gives_something_else_for_another_order_is_named_so():
    place = (str(METRICS), "spans", f"{REARRANGED}00")
    wanted = "spans (metrics.py) gives something else than it did for one of its arguments in another order"
    assert first_other({place: [1]}, {}, {place: [2]}) == wanted


@pytest.mark.parametrize(
    ("before", "after", "is_told"), [(False, True, True), (True, False, False), (True, True, False)]
)
def test_one_that_changes_what_it_is_given_is_named(before, after, is_told):
    place = (str(METRICS), "spans", f"{OVERWRITTEN}00")
    wanted = "spans (metrics.py) changes what it is given, which it did not" if is_told else None
    assert first_other({place: before}, {}, {place: after}) == wanted


def test_no_number_is_alike_to_itself():
    assert alike([float("nan"), "a", None], [float("nan"), "a", None])
    assert not alike(float("nan"), 0.0) and not alike("a", "b") and not alike([1], 1)
