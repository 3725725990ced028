"""Stacks that were read while the program changed them: continued outwards, and standing for what was lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unstall.benchmark.cut_stacks import with_whole_stacks
from unstall.records.observations import Frame, Observation, StackSample, StackWindow

MODULE = Frame("<module>", "/home/me/train.py", 90)
LOOP = Frame("main", "/home/me/train.py", 70)
CALLBACK = Frame("Auc.update", "/home/me/train.py", 20)
MODEL = Frame("Net.forward", "/home/me/train.py", 9)
CURVE = Frame("roc_curve", "/py/site-packages/sklearn/metrics/ranking.py", 5)
UNIQUE = Frame("_unique1d", "/py/site-packages/numpy/lib/arraysetops.py", 6)
UNIQUE_LATER = Frame("_unique1d", "/py/site-packages/numpy/lib/arraysetops.py", 8)
CONFIG = Frame("get_config", "/py/site-packages/sklearn/config.py", 7)


def sample(*frames: Frame, n: int = 1, pid: int = 7) -> StackSample:
    return StackSample(pid, "MainThread", frames, n, tid=pid)


def whole(*samples: StackSample, lost: int = 0) -> dict[tuple[Frame, ...], int]:
    seen = with_whole_stacks(Observation(0.0, samples=samples, lost=lost))
    assert seen.lost == 0
    return {each.frames: each.count for each in seen.samples}


IN_METRIC = sample(MODULE, LOOP, CALLBACK, CURVE, UNIQUE, n=40)
IN_MODEL = sample(MODULE, LOOP, MODEL, n=60)


def test_a_stack_that_begins_inside_a_library_is_continued_as_others_are():
    assert whole(IN_METRIC, IN_MODEL, sample(UNIQUE_LATER, n=6)) == {
        IN_METRIC.frames: 40,
        IN_MODEL.frames: 60,
        (MODULE, LOOP, CALLBACK, CURVE, UNIQUE_LATER): 6,
    }


def test_of_several_ways_there_the_usual_one_is_taken():
    elsewhere = sample(MODULE, LOOP, MODEL, UNIQUE, n=5)
    assert (MODULE, LOOP, CALLBACK, CURVE, UNIQUE_LATER) in whole(IN_METRIC, elsewhere, sample(UNIQUE_LATER))


def test_cut_stacks_stand_for_those_that_could_not_be_read():
    found = whole(IN_METRIC, IN_MODEL, sample(UNIQUE_LATER, n=6), sample(CURVE, n=2), lost=40)
    assert found[MODULE, LOOP, CALLBACK, CURVE, UNIQUE_LATER] == 6 + 30
    assert found[MODULE, LOOP, CALLBACK, CURVE] == 2 + 10
    assert found[IN_MODEL.frames] == 60


def test_what_nothing_continues_is_lost_as_well():
    found = whole(IN_METRIC, IN_MODEL, sample(UNIQUE_LATER, n=6), sample(CONFIG, n=2))
    assert found[MODULE, LOOP, CALLBACK, CURVE, UNIQUE_LATER] == 6 + 2
    assert sum(found.values()) == 108


def test_without_cut_stacks_nobody_knows_where_others_were_lost():
    assert whole(IN_METRIC, IN_MODEL, lost=500) == {IN_METRIC.frames: 40, IN_MODEL.frames: 60}


def test_many_lost_ones_have_another_reason_than_a_single_cut_one():
    assert whole(IN_METRIC, IN_MODEL, sample(UNIQUE_LATER), lost=500)[
        (MODULE, LOOP, CALLBACK, CURVE, UNIQUE_LATER)
    ] == 1 + 10  # fmt: skip


def test_a_thread_that_begins_otherwise_is_left_alone():
    serving = sample(Frame("Greenlet.run", "/py/site-packages/gevent/greenlet.py", 1), CURVE, UNIQUE, n=20)
    own = sample(Frame("at_exit", "/home/me/train.py", 3))
    assert whole(IN_MODEL, serving, own) == {IN_MODEL.frames: 60, serving.frames: 20, own.frames: 1}


def test_another_process_does_not_say_what_called_it():
    worker = sample(MODULE, LOOP, MODEL, n=60, pid=8)
    assert whole(IN_METRIC, worker, StackSample(8, "MainThread", (UNIQUE,), 2, tid=8)) == {
        IN_METRIC.frames: 40,
        worker.frames: 60,
    }


def test_windows_are_continued_by_what_was_seen_in_others():
    cut = StackWindow(1.0, [sample(UNIQUE_LATER, n=2)], lost=3)
    observation = Observation(0.0, samples=[IN_METRIC], before_loop=[cut], windows=[cut], pauses=[cut])
    seen = with_whole_stacks(observation)
    expected = [StackWindow(1.0, [sample(MODULE, LOOP, CALLBACK, CURVE, UNIQUE_LATER, n=5)])]
    assert seen.before_loop == seen.windows == seen.pauses == expected


FRAMES = st.sampled_from([MODULE, LOOP, CALLBACK, MODEL, CURVE, UNIQUE, CONFIG])


@given(st.lists(st.tuples(st.lists(FRAMES, min_size=1, max_size=6), st.integers(1, 50))), st.integers(0, 100))
def test_none_is_made_up(stacks, lost):
    samples = [sample(*frames, n=count) for frames, count in stacks]
    found = whole(*samples, lost=lost)
    assert sum(found.values()) <= sum(each.count for each in samples) + lost
    given_whole = {each.frames for each in samples}
    assert all(any(frames[-len(given) :] == given for given in given_whole) for frames in found)
