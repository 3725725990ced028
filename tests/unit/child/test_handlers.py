"""An exception that a signal handler of the program's raises is never ours to swallow."""

import functools
import os
import signal
import sys

import pytest

from unstall.child import handlers, recording, retention
from unstall.child.watcher import Watcher


class Preempted(Exception):
    pass


def _raising(number, frame):
    _deeper()


def _deeper():
    raise Preempted


class _Callable:
    def __call__(self, number, frame):
        raise Preempted

    def method(self, number, frame):
        raise Preempted


@pytest.fixture(params=[_raising, functools.partial(_raising), _Callable(), _Callable().method], ids=type)
def handler(request):
    before = signal.signal(signal.SIGUSR1, request.param)
    yield
    signal.signal(signal.SIGUSR1, before)


def test_it_is_told_from_other_exceptions(handler):
    with pytest.raises(Preempted) as caught:
        os.kill(os.getpid(), signal.SIGUSR1)
    assert handlers.raised(caught.value)
    with pytest.raises(Preempted) as caught:
        _deeper()
    assert not handlers.raised(caught.value)


def test_the_watcher_lets_it_through(handler, monkeypatch):
    told = []

    def emit_fact(kind, **facts):
        os.kill(os.getpid(), signal.SIGUSR1)
        told.append(kind)

    watcher = Watcher(emit_fact, {"flops": False})
    number = recording.native.intern("~forward")
    with pytest.raises(Preempted):
        watcher(number, 0, None, None)
    assert told == []


def test_a_look_at_memory_lets_it_through(handler, monkeypatch):
    def measure(self, value):
        os.kill(os.getpid(), signal.SIGUSR1)

    monkeypatch.setattr("unstall.child.sizes.Sizer.measure", measure)
    with pytest.raises(Preempted):
        retention.probe(sys._getframe(), time_limit_s=60.0)
