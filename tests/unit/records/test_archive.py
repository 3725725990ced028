"""One run as it is kept: the series of its steps and batches."""

import msgspec
import numpy as np
import pytest

from unstall.records.archive import FetchSeries, StepSeries
from unstall.records.vocabulary import PHASE_NAMES


def _steps(**more):
    values = {
        "boundaries_f8": np.array([10.0, 10.5, 11.5, 12.0]).tobytes(),
        "phases_f4": {"forward": np.array([0.25, 0.5, 0.25], "<f4").tobytes()},
        "measured_u1": b"\0\1\1",
        "gap_u1": b"\1\0\0",
    }
    return StepSeries(**{**values, **more})


def test_steps_are_read_as_arrays():
    steps = _steps()
    assert len(steps) == 3
    assert steps.starts.tolist() == [10.0, 10.5, 11.5] and steps.ends.tolist() == [10.5, 11.5, 12.0]
    assert steps.durations.tolist() == [0.5, 1.0, 0.5]
    assert steps.measured.tolist() == [False, True, True] and steps.at_boundary.tolist() == [True, False, False]
    assert steps.phase("forward").tolist() == [0.25, 0.5, 0.25] and steps.phase("sync").tolist() == [0, 0, 0]


def test_a_million_steps_take_about_thirty_bytes_each():
    rows = 1_000_000
    series = _steps(
        boundaries_f8=bytes(8 * (rows + 1)),
        phases_f4={name: bytes(4 * rows) for name in PHASE_NAMES[:5]},
        measured_u1=bytes(rows),
        gap_u1=bytes(rows),
    )
    assert len(msgspec.msgpack.encode(series)) < 31 * rows


@pytest.mark.parametrize(
    "broken",
    [
        {"measured_u1": b"\1"},
        {"gap_u1": b""},
        {"boundaries_f8": bytes(31)},
        {"phases_f4": {"forward": bytes(8)}},
        {"boundaries_f8": b"", "phases_f4": {}, "measured_u1": b"", "gap_u1": b""},
    ],
)
def test_series_of_unlike_length_are_refused(broken):
    with pytest.raises(ValueError, match="same length"):
        _steps(**broken)


def test_batches_of_unlike_length_are_refused():
    one = {"wall_f4": bytes(4), "cpu_f4": bytes(4), "blocked_f4": bytes(4), "pid_i4": bytes(4)}
    assert len(FetchSeries(starts_f8=bytes(8), **one)) == 1
    with pytest.raises(ValueError, match="same length"):
        FetchSeries(starts_f8=bytes(16), **one)
