"""The windows of time that a trace is divided into."""

from __future__ import annotations

import kineto_files as files
import pytest

from unstall.trace.metrics import TimelineMetrics
from unstall.trace.readers import read

STEP = 10_000.0
KERNELS = 200


def behind(tmp_path, lag: int, *, recorded: bool = False, steps: int = 4) -> TimelineMetrics:
    """A device so many steps behind its host; what it does first is recorded in part only, as profilers do, or whole.

    The host submits a step's kernels at once, the last into a full queue.
    """
    events = []
    for number in range(steps):
        at, first = number * STEP, KERNELS * number + 1
        events.append(files.step(number, at, STEP))
        events.append(files.host("aten::mm", at + 1, STEP - 5))
        for call in range(KERNELS):
            until = STEP - 9 if call == KERNELS - 1 else 10 * call + 7
            events.append(files.api("cudaLaunchKernel", at + 10 * call + 2, until - 10 * call - 2, first + call))
            began = at + lag * STEP - 10 + call * STEP / KERNELS
            events.append(files.work("gemm", began, STEP / KERNELS, first + call))
    earlier = range(lag) if recorded else range(lag - 1, lag)
    events += [files.work("gemm", number * STEP - 10, STEP) for number in earlier]
    (timeline,) = read(files.write(tmp_path / "trace.json", files.document(events)))
    return TimelineMetrics(timeline)


def test_steps_are_the_devices_where_it_is_far_behind_and_its_first_work_is_not_recorded(tmp_path):
    metrics = behind(tmp_path, 3)
    assert (metrics.windows.dur_ns / 1e3).tolist() == pytest.approx([STEP] * 4)
    assert metrics.shares["busy"] == pytest.approx(1)
    assert metrics.replay.faithful
    assert metrics.replay.gain("compute=0.5x") == pytest.approx(2, rel=0.02)
    assert metrics.replay.gain("aten::mm=0.5x") == pytest.approx(2, rel=0.02)
    assert metrics.replay.gain("launch=0") == pytest.approx(1, abs=0.01)
    assert max(metrics.replay.critical, key=metrics.replay.critical.__getitem__) == "compute"


@pytest.mark.parametrize(("lag", "recorded"), [(0, False), (1, True), (3, True)])
def test_else_they_are_the_hosts(tmp_path, lag, recorded):
    metrics = behind(tmp_path, lag, recorded=recorded)
    first = metrics.timeline.steps.start_ns
    assert metrics.windows.start_ns.tolist() == first.tolist()
    assert metrics.windows.host_start_ns.tolist() == first.tolist()


def test_operators_are_counted_where_the_host_calls_them(tmp_path):
    windows = behind(tmp_path, 3).windows
    assert (windows.host_start_ns < windows.start_ns).all()
    assert (windows.start_ns - windows.host_start_ns >= windows.dur_ns).all()
