"""Counts of events, names and the watcher that hears of the first calls, in both recorders."""

from __future__ import annotations

import os
import threading

import pytest

from unstall.child.tap import Tap
from unstall.records.vocabulary import Tick

FORWARD, OTHER = Tick.FORWARD, Tick.OTHER


def add(a, b=1, *, c=0):
    """The sum of all."""
    return a + b + c


# ---------------------------------------------------------------- names


def test_new_names_are_told_once(closed_recorder):
    told = []
    closed_recorder.api.on_name(lambda number, name: told.append((number, name)))
    number = closed_recorder.api.intern("told.name")
    closed_recorder.api.intern("told.name")
    assert told == [(number, "told.name")]
    assert closed_recorder.api.names()["told.name"] == number


# ---------------------------------------------------------------- ticks, the watcher, the control word


def test_ticks_are_counted_by_kind(recorder):
    tap = Tap(recorder.path)
    work = recorder.api.wrap(add, "tick.work", kind=FORWARD)
    number = recorder.api.intern("tick.number")
    for _ in range(3):
        work(1)
    recorder.api.tick(0, number, None)
    assert tap.ticks == [{0: 1, FORWARD: 3}.get(kind, 0) for kind in Tick]
    assert tap.pid == os.getpid()


def test_the_watcher_hears_the_first_calls_of_each_name(recorder):
    heard = []
    recorder.api.watch(lambda *call: heard.append(call), False)
    one = recorder.api.wrap(lambda *a: None, "watch.one", kind=FORWARD)
    two = recorder.api.wrap(lambda *a: None, "watch.two", kind=OTHER)
    plain = recorder.api.wrap(lambda *a: None, "watch.plain")
    for index in range(70):
        one("self", index)
    two("other")
    plain("unheard")
    numbers = recorder.api.names()
    assert heard[:2] == [(numbers["watch.one"], 0, "self", 0), (numbers["watch.one"], 0, "self", 1)]
    assert [call[0] for call in heard].count(numbers["watch.one"]) == 64
    assert heard[-1] == (numbers["watch.two"], 0, "other", None)


def test_a_keyword_argument_is_the_watchers_second(recorder):
    heard = []
    recorder.api.watch(lambda *call: heard.append(call[2:]), False)
    recorder.api.wrap(lambda x, y: None, "watch.keyword", kind=FORWARD)("first", y="second")
    assert heard == [("first", "second")]


def test_the_watcher_hears_every_call_when_asked_to(recorder):
    heard = []
    recorder.api.watch(lambda *call: heard.append(call), True)
    work = recorder.api.wrap(add, "watch.every", kind=FORWARD)
    for index in range(200):
        work(index)
    assert len(heard) == 200


def test_the_watcher_hears_nothing_of_other_threads(recorder):
    heard = []
    recorder.api.watch(lambda *call: heard.append(call), True)
    work = recorder.api.wrap(add, "watch.thread", kind=FORWARD)
    thread = threading.Thread(target=work, args=(1,))
    thread.start()
    thread.join()
    assert heard == []
    assert Tap(recorder.path).ticks[FORWARD] == 1


def in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_the_watcher_hears_of_the_thread_that_serves_where_the_main_one_calls_no_model(recorder):
    heard = []
    recorder.api.watch(lambda *call: heard.append(call[2:]), True)
    work = recorder.api.wrap(add, "watch.serving", kind=FORWARD)
    in_a_thread(lambda: [work(call) for call in range(6)])
    in_a_thread(lambda: [work(10 + call) for call in range(6)])
    assert heard == [(3, None), (4, None), (5, None)]


def test_a_thread_that_serves_is_not_heard_where_the_main_one_calls_models(recorder):
    heard = []
    work = recorder.api.wrap(add, "watch.beside", kind=FORWARD)
    work(0)
    recorder.api.watch(lambda *call: heard.append(call), True)
    in_a_thread(lambda: [work(call) for call in range(9)])
    assert heard == []


def test_the_parents_wishes_are_for_the_main_thread(recorder):
    heard = []
    recorder.api.watch(lambda *call: heard.append(call[1]), True)
    recorder.api.control(2)
    work = recorder.api.wrap(add, "watch.wish", kind=FORWARD)
    in_a_thread(lambda: [work(call) for call in range(5)])
    assert heard == [0, 0]


def test_the_control_word_reaches_the_watcher_until_it_is_answered(recorder):
    heard = []
    recorder.api.watch(lambda number, control, *rest: heard.append(control), False)
    work = recorder.api.wrap(add, "control.work", kind=FORWARD)
    for index in range(64):
        work(index)
    tap = Tap(recorder.path)
    heard.clear()
    work(1)
    assert heard == []
    tap.control = 2
    assert tap.control == 2
    work(1)
    work(1)
    assert heard == [2, 2]
    recorder.api.control(0)
    assert tap.control == 0
    work(1)
    assert heard == [2, 2]


def test_what_the_watcher_raises_ends_the_program_before_the_call(recorder):
    called = []

    def stop(*call):
        raise SystemExit(4)

    work = recorder.api.wrap(called.append, "watch.stop", kind=FORWARD, group=0)
    recorder.api.watch(stop, False)
    with pytest.raises(SystemExit):
        work(1)
    assert called == []
    recorder.api.watch(None, False)
    work(2)
    assert called == [2]
    assert recorder.spans()["depth"].tolist() == [0]
