"""Stacks that the program samples of itself."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import weakref

from unstall.child import inprocess
from unstall.child.inprocess import InProcessSampler


def here():
    return inprocess._stack(sys._getframe())


def test_a_stack_is_outermost_first_with_current_lines():
    stack = here()
    assert stack[-1][:2] == ("here", __file__)
    assert stack[-2][0] == "test_a_stack_is_outermost_first_with_current_lines"
    assert stack[-1][2] == here.__code__.co_firstlineno + 1
    assert inprocess._stack(None) == ()


def test_a_frame_without_a_line_is_at_its_functions_first():
    """As Python has it while a loop jumps back, from 3.11 on."""

    def nowhere():
        return inprocess._stack(sys._getframe())

    nowhere.__code__ = nowhere.__code__.replace(co_linetable=b"")
    assert nowhere()[-1] == ("nowhere", __file__, nowhere.__code__.co_firstlineno)


def test_a_deep_stack_keeps_its_innermost_frames():
    def down(n):
        return here() if n == 0 else down(n - 1)

    stack = down(200)
    assert len(stack) <= 60
    assert stack[-1][0] == "here"


QUICK = {"windows": 2, "window_s": 0.05, "pause_s": 0.0, "period_s": 0.001}


def test_the_main_thread_is_sampled_in_windows_and_told():
    told = []

    def emit_fact(kind, **facts):
        told.append((kind, json.loads(json.dumps(facts))))

    sampler = InProcessSampler(emit_fact, **QUICK)
    sampler.start()
    sampler._thread.join(timeout=60)
    assert not sampler._thread.is_alive()
    assert [kind for kind, _ in told] == ["samples", "samples"]
    for _, window in told:
        assert window["pid"] == os.getpid()
        assert window["began"] < window["ended"]
        for stack, count in window["stacks"]:
            assert count > 0
            assert all(len(frame) == 3 for frame in stack)
    (stack, _) = told[0][1]["stacks"][0]
    assert any(frame[1] == __file__ for frame in stack)


def test_it_does_not_keep_the_program_from_ending():
    assert InProcessSampler(lambda *args, **kwargs: None)._thread.daemon


class Model:
    """Something large."""


def test_what_a_function_held_is_gone_when_it_has_ended(monkeypatch):
    """The sampler sleeps for long between two looks: nothing of the program's may live in it meanwhile."""
    looked, real = threading.Event(), inprocess._stack

    def stack(frame):
        seen = real(frame)
        if any(name == "train" for name, _, _ in seen):
            looked.set()
        return seen

    def train():
        model = Model()
        assert looked.wait(60)
        return weakref.ref(model)

    monkeypatch.setattr(inprocess, "_stack", stack)
    sampler = InProcessSampler(lambda kind, **facts: None, **{**QUICK, "period_s": 0.6})
    sampler.start()
    model = train()
    deadline = time.monotonic() + 0.4  # the sampler may be in the middle of its look, and sleeps for longer after it
    while model() is not None and time.monotonic() < deadline:
        time.sleep(0.001)
    assert model() is None
    sampler._thread.join(timeout=60)
