"""Answers given again: as good as fresh ones, whatever the caller does to them."""

import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unstall.child.experiments import arguments, replay

plain = st.recursive(
    st.none() | st.integers() | st.text(max_size=4) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(plain)
def test_an_answer_equals_what_was_recorded(value):
    answer = replay.giver(value)
    assert answer((), {}) == value
    assert answer((), {}) == value


def test_what_the_caller_changes_does_not_reach_the_next_answer():
    answer = replay.giver({"rows": [1, 2], "array": np.ones(3)})
    given = answer((), {})
    given["rows"].append(3)
    given["array"] += 1
    given["more"] = True
    again = answer((), {})
    assert again["rows"] == [1, 2]
    assert again["array"].tolist() == [1, 1, 1]
    assert "more" not in again


def test_nested_answers_can_be_changed_at_any_depth():
    value = {"rows": [{"loss": 0.5, "names": ["a", "b"]}, (1, [2])]}
    ring = replay.Ring(1)
    ring._began -= 10  # no more are collected
    ring.record(value)
    for answer in (replay.giver(value), ring.answer):
        given = answer((), {})
        assert given == value
        given["rows"][0]["names"].append("c")
        given["rows"][1][1].clear()
        assert answer((), {}) == value == {"rows": [{"loss": 0.5, "names": ["a", "b"]}, (1, [2])]}


def test_what_is_no_plain_data_is_given_as_the_same_object():
    thing = object()
    given = replay.giver({"rows": [[thing]]})((), {})
    assert given["rows"][0][0] is thing


def test_a_tensor_that_is_changed_in_place_is_copied_from_then_on():
    answer = replay.giver(torch.ones(3))
    answer((), {}).mul_(2)
    first = answer((), {})
    first.mul_(2)
    assert torch.equal(answer((), {}), answer((), {}))


def test_an_answer_of_inference_mode_can_be_given_in_training():
    with torch.inference_mode():
        answer = replay.giver(torch.ones(3))
        answer((), {}).mul_(2)
    weight = torch.ones(3, requires_grad=True)
    (weight * answer((), {})).sum().backward()
    assert torch.equal(weight.grad, torch.ones(3))


@pytest.mark.parametrize("value", [(x for x in ()), iter([1]), map(str, [1]), [iter([1])]])
def test_what_is_used_up_by_reading_cannot_be_given_again(value):
    with pytest.raises(replay.CannotReplay):
        replay.giver(value)


def test_each_call_site_has_its_own_ring():
    sites = replay.Sites(replay.Ring)

    def ask():
        return sites.ring(sys._getframe(1))

    rings = [ask(), ask()]
    assert rings[0] is not rings[1]
    for _ in range(3):
        (ring,) = {id(ask()): None}
        rings.append(ring)
    assert len(set(rings[2:])) == 1


def test_a_ring_answers_in_turn_once_it_is_full():
    ring = replay.Ring(2, collecting_s=0.0)
    ring.record("a")
    assert not ring.ready
    ring.record("b")
    assert ring.ready
    assert {ring.answer((), {}), ring.answer((), {})} == {"a", "b"}


def test_short_calls_give_many_answers_so_that_their_mean_is_that_of_the_calls():
    ring = replay.Ring(2, collecting_s=60.0)
    recorded = []
    while not ring.ready:
        recorded.append([len(recorded)])
        ring.record(recorded[-1])
    assert 100 < len(recorded) < 10_000
    assert sorted(ring.answer((), {}) for _ in recorded) == recorded


def test_what_a_ring_gives_is_the_callers():
    """However alike its answers are: all lists, or of any kind."""
    for recorded in ([[1], [2]], [[1], None], [[1], {"a": [2]}], [None, 1.5]):
        ring = replay.Ring(2, collecting_s=0.0)
        for value in recorded:
            ring.record(value)
        for _ in range(3):
            given = [ring.answer((), {}) for _ in recorded]
            assert given == recorded
            for value in given:
                if isinstance(value, list):
                    value.append("changed")


def test_a_call_that_no_python_code_makes_has_a_ring():
    sites = replay.Sites(replay.Ring)
    assert sites.ring(None) is sites.ring(None)
    assert sites.ring(None) is not sites.ring(sys._getframe())


def test_sites_without_end_share_a_ring():
    sites, space = replay.Sites(replay.Ring, most=2), {"sys": sys}
    found = []
    for _ in range(5):
        exec("frame = sys._getframe()", space)  # new code each time
        found.append(sites.ring(space["frame"]))
    assert len({id(ring) for ring in found}) == 2


def test_large_answers_are_not_collected_for_long():
    ring = replay.Ring(2, collecting_s=60.0)
    while not ring.ready:
        ring.record({"image": np.zeros(20 << 20, np.uint8), "label": 1})
    assert len(ring.answers) == 4


class TestArguments:
    """A call that changes what it is given does more than answer."""

    def changed(self, function, *args):
        before = arguments.state(args, {})
        function(*args)
        return arguments.changed(before, args, {}, function)

    def test_changes_are_seen(self):
        assert self.changed(lambda box: box.append(1), [0]) == "box"
        assert self.changed(lambda box: box.update(a=1), {}) == "box"
        assert self.changed(lambda x: x.add_(1), torch.ones(2)) == "x"
        assert self.changed(lambda x: x.fill(7), np.zeros(500)) == "x"

    def test_reading_is_no_change(self):
        assert self.changed(lambda box, x: (len(box), x.sum()), [1, 2], torch.ones(2)) is None
        assert self.changed(lambda box: sum(box), list(range(1000))) is None
