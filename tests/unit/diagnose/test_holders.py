"""Which function holds the time, which that of a growth, and where chance would decide."""

from __future__ import annotations

import msgspec
import pytest
from blamecase import blame_of
from factory import CALL, Source, measurement, stack
from hypothesis import given
from hypothesis import strategies as st

from unstall.diagnose.blame import Blame
from unstall.diagnose.holders import holder_of, holder_of_growth
from unstall.records.measurements import Slowing

STEP = 0.1
TEXT = """
def distance(a, b):
    return abs(a - b)  # distance

def search(seen, item):
    near = [distance(each, item) for each in seen]  # near
    return min(near)  # least

def train(model, loader):
    seen = []
    for x in loader:
        search(seen, x)  # ask
        loss = model(x)  # model
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    return Source(tmp_path_factory.mktemp("code") / "train.py", TEXT)


def placed(code, deep, above, aside=0):
    """Samples in what is called deepest, in its caller itself, and in the model."""
    ask, near = code.at("train", "# ask"), code.at("search", "# near")
    samples = [
        stack(ask, near, code.at("distance", "# distance"), count=deep),
        stack(ask, code.at("search", "# least"), count=above),
        stack(code.at("train", "# model"), CALL, count=aside),
    ]
    return blame_of([sample for sample in samples if sample.count]).main


def name(holder):
    return holder and holder[1]


@pytest.mark.parametrize(
    ("deep", "above", "expected"),
    [(700, 300, "distance"), (520, 480, "search"), (480, 520, "search"), (5200, 4800, "distance")],
)
def test_a_function_that_may_hold_half_or_not_is_blamed_at_its_caller(code, deep, above, expected):
    assert name(holder_of(placed(code, deep, above))) == expected


def test_where_none_surely_holds_half_it_is_the_deepest_that_does_here(code):
    assert name(holder_of(placed(code, 2, 1))) == "distance"


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 400))
def test_there_is_a_holder_where_any_of_the_programs_is_seen(code, deep, above, aside):
    samples = placed(code, deep, above, aside)
    assert (holder_of(samples) is None) == (not samples)


def test_growth_is_of_whom_it_is_though_others_take_more(code):
    early, late = placed(code, 40, 0, 400), placed(code, 200, 0, 400)
    assert name(holder_of(late)) == "train"
    assert name(holder_of_growth(early, late, 1.0)) == "distance"


def test_growth_that_is_spread_over_what_a_function_calls_is_its_own(code):
    early, late = placed(code, 40, 40, 200), placed(code, 120, 120, 200)
    assert name(holder_of_growth(early, late, 1.0)) == "search"


@pytest.mark.parametrize("worth", [1.0, 1.2])
def test_what_chance_explains_is_no_growth(code, worth):
    early, late = placed(code, 100, 100, 200), placed(code, 110, 100, 205)
    assert holder_of_growth(early, late, worth) is None


def test_a_function_that_takes_as_long_as_before_is_not_blamed(code):
    """An early sample of a step that was short stands for less time than a late one."""
    early, late = placed(code, 0, 200, 200), placed(code, 300, 100, 100)
    assert name(holder_of_growth(early, late, 0.5)) == "distance"


def test_only_the_phase_that_grows_is_looked_at(code):
    searching = (code.at("train", "# ask"), code.at("search", "# near"), code.at("distance", "# distance"))
    modelling = (code.at("train", "# model"), CALL)
    slowing = Slowing(
        per_1000=1.0, low=0.9, high=1.1, begin_s=STEP, end_s=2 * STEP, phase="other",
        early=[stack(*searching, count=100), stack(*modelling, count=100)],
        late=[stack(*searching, count=150), stack(*modelling, count=50)],
        early_s=STEP, late_s=2 * STEP,
    )  # fmt: skip
    blame = Blame(measurement({"forward": 0.05, "other": 0.05}, slowing=slowing))
    assert blame.grown_culprit(slowing).function == "distance"
    assert blame.grown_culprit(msgspec.structs.replace(slowing, phase="forward")) is None
    assert blame.grown_culprit(msgspec.structs.replace(slowing, early=[])) is None
