"""What timing a function tells, put in the place of what the samples say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipelines import DECODE, GETITEM, LOG, READ, parts, pipeline

from unstall.model import Changes, Timed, knowing, predict
from unstall.model.timed import place_of

BODY = {"forward": 0.004, "callback": 0.01}


@given(st.floats(0, 1))
def test_the_share_of_a_function_is_that_which_was_timed(share):
    weighed = parts().with_share("data", DECODE, share)
    assert weighed.share("data", DECODE) == pytest.approx(share)
    assert weighed.share("data", READ) == pytest.approx(0.75 * (1 - share))
    assert weighed.share("callback", LOG) == parts().share("callback", LOG)
    assert weighed.factor("data", {DECODE: 0.0}) == pytest.approx(1 - share)


def test_a_place_where_all_samples_are_in_the_function_gets_a_rest():
    weighed = parts().with_share("data", GETITEM, 0.95)
    assert weighed.share("data", GETITEM) == pytest.approx(0.95)
    assert weighed.share("data", DECODE) == pytest.approx(0.57)


def test_a_place_that_never_showed_the_function_stays():
    assert parts().with_share("callback", DECODE, 0.5) == parts()


def test_what_was_timed_decides_what_is_left_without_it():
    one = pipeline(service=0.02, workers=0, body=BODY, measured_s=0.034)
    for share in (0.2, 0.4, 0.5):
        known = knowing(one, "Photos.decode", Timed(share, 1.0))
        after = predict(known, Changes(scales={"Photos.decode": 0.0}))
        assert after.step_s == pytest.approx(0.034 * (1 - share), rel=0.08)


def test_a_function_of_several_places_is_known_in_all():
    one = pipeline(service=0.02, workers=0, body=BODY, measured_s=0.034)
    both = knowing(knowing(one, "Photos.decode", Timed(0.4, 1.0)), "log", Timed(0.29, 1.0))
    assert both.parts.share("data", DECODE) == pytest.approx(0.68)
    assert both.parts.share("callback", LOG) == pytest.approx(0.986)
    assert place_of(both, DECODE) == "data" and place_of(both, LOG) == "callback"


@pytest.mark.parametrize("name", ["nothing_of_the_kind", "forward"])
def test_what_no_sample_shows_changes_nothing(name):
    one = pipeline(workers=0)
    assert knowing(one, name, Timed(0.5, 1.0)) is one


def test_time_between_epochs_belongs_to_a_place_too():
    one = pipeline(workers=0, body=BODY, epoch=10, epoch_close_s=0.2, closing={"callback": 0.5})
    assert one.seen_s("callback") == pytest.approx(0.01 + 0.01)
    assert one.seen_s("data") == pytest.approx(0.02)
