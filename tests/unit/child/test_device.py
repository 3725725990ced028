"""Waiting for a device, which is a stand-in here: whoever times a program on one must not time how far the host is."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from unstall.child import device
from unstall.child.trial.clock import TrialClock


class Cuda:
    """A device that is late: each step's work takes a second more than the host's part of it."""

    def __init__(self, initialized=True, capturing=False):
        self.late = 0.0
        self.now = 0.0
        self.waits = 0
        self.is_initialized = lambda: initialized
        self.is_current_stream_capturing = lambda: capturing

    def step(self):
        self.now += 0.001
        self.late += 1.0

    def synchronize(self):
        self.waits += 1
        self.now += self.late
        self.late = 0.0


@pytest.fixture
def cuda(monkeypatch):
    made = Cuda()
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=made))
    return made


@pytest.mark.parametrize("state", [{"initialized": False}, {"capturing": True}])
def test_no_wait_where_there_is_no_device_or_a_graph_is_recorded(monkeypatch, state):
    cuda = Cuda(**state)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    device.wait()
    assert cuda.waits == 0


def test_without_torch_nothing_is_waited_for(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    device.wait()


@pytest.mark.parametrize("plan", [{"steps": 10}, {"seconds": 9.5}])
def test_a_trial_times_what_the_device_does(cuda, tmp_path, monkeypatch, plan):
    monkeypatch.setattr("unstall.child.trial.clock.monotonic", lambda: cuda.now)
    clock = TrialClock({"warmup": 3, **plan}, str(tmp_path))

    def loop():
        for _ in range(10_000):
            cuda.step()
            clock.tick()

    with pytest.raises(SystemExit):
        loop()
    counted = len(clock.times) - 1 - clock.warmup
    step_s = (clock.times[-1] - clock.times[clock.warmup]) / counted
    assert step_s == pytest.approx(1.001, rel=0.01)
    assert cuda.waits <= 1 + counted
