"""The live header of a recording, read and written while the program runs."""

from __future__ import annotations

import os

import pytest

from unstall.child.tap import Tap
from unstall.records.vocabulary import Tick


def test_ticks_and_process_are_read_live(recorder):
    tap = Tap(recorder.path)
    assert (tap.pid, tap.ticks, tap.control) == (os.getpid(), [0] * len(Tick), 0)
    for _ in range(3):
        recorder.api.tick(Tick.OPTIMIZER, recorder.api.intern("tap.tick"), None)
    assert tap.ticks == [3 * (kind == Tick.OPTIMIZER) for kind in Tick]


@pytest.mark.parametrize("value", [0, 1, 3, 2**32 - 1])
def test_the_control_word_reaches_the_program(recorder, value):
    heard = []
    recorder.api.watch(lambda number, control, *rest: heard.append(control), True)
    tap = Tap(recorder.path)
    tap.control = value
    assert tap.control == value
    recorder.api.wrap(len, "tap.control", kind=Tick.FORWARD)("abc")
    assert heard == [value]
    assert recorder.header()["control"] == value


@pytest.mark.parametrize("content", [b"", bytes(8192), b"something else" * 1000])
def test_a_file_that_is_no_recording_yet_is_a_value_error(tmp_path, content):
    (tmp_path / "rec-1.bin").write_bytes(content)
    with pytest.raises(ValueError):
        Tap(tmp_path / "rec-1.bin")


def test_a_file_that_is_gone_is_an_os_error(tmp_path):
    with pytest.raises(OSError):
        Tap(tmp_path / "rec-1.bin")
