"""Clock and power of GPUs over the looks at which they were at work."""

from __future__ import annotations

import pytest

from unstall.benchmark.gpu_states import gpu_states
from unstall.diagnose.gpu_clocks import held_back
from unstall.records.observations import GpuClock, MachinePoint


def look(t, *clocks, busy=0.9):
    return MachinePoint(t, 0.0, (busy,) * len(clocks), (0,) * len(clocks), clocks)


SLOW = GpuClock(1200, 2000, 298.0, 300.0, ("its power limit",))
QUICK = GpuClock(1980, 2000, 250.0, 300.0)


def test_looks_at_which_a_device_idles_or_outside_the_loop_do_not_count():
    looks = [look(0.0, QUICK), look(1.0, SLOW), look(2.0, SLOW), look(3.0, QUICK, busy=0.1)]
    (state,) = gpu_states(looks, 0.5, 3.5)
    assert (state.clock, state.watts, state.held_back) == (pytest.approx(0.6), 298.0, {"its power limit": 1.0})


def test_a_device_that_does_not_tell_has_no_state():
    assert gpu_states([look(1.0, None, QUICK)], 0, 2)[0] is None
    assert gpu_states([look(1.0, None, QUICK)], 0, 2)[1].clock == pytest.approx(0.99)
    assert gpu_states([MachinePoint(1.0, 0.0)], 0, 2) == []


def test_a_device_that_its_power_limit_slows_gets_a_note():
    (note,) = held_back(gpu_states([look(1.0, QUICK, SLOW)], 0, 2))
    assert note == (
        "GPU 1 ran at 60 % of its highest clock, held back by its power limit 100 % of the time (298 of 300 W)"
    )


def test_a_lower_clock_for_no_reason_or_a_reason_without_a_lower_clock_is_no_matter():
    lower, limited = GpuClock(1200, 2000, 90.0, 300.0), GpuClock(1990, 2000, 300.0, 300.0, ("its power limit",))
    assert not list(held_back(gpu_states([look(1.0, lower, limited)], 0, 2)))
