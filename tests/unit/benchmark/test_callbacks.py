"""Time per callback and event, from synthetic recordings."""

from __future__ import annotations

import numpy as np
import pytest
from spanfactory import Recording, train_step

from unstall.benchmark.callbacks import callback_times
from unstall.benchmark.steps import find_loop

SLOW = "~event.lightning.Slow.on_train_batch_end"


def recorded(steps=40):
    r = Recording()
    r.emit_fact("callback", name=SLOW, file="/p/train.py", line=7)
    for step in range(steps):
        train_step(r)
        with r.span(SLOW):
            r.spend(0.02)
            if step % 10 == 0:
                r.do("~callback.torch.save", 0.1)
    with r.span("~event.lightning.pkg.Mine.on_train_end"):
        r.spend(0.5)
    r.do("~callback.torch.save", 0.3)
    return r.process()


def times(process, *, run_s=10.0, first=0):
    loop = find_loop(process)
    return {time.name: time for time in callback_times(process, loop, np.arange(len(loop)) >= first, run_s)}


def test_every_call_of_the_run_counts_and_a_librarys_call_inside_belongs_to_the_callback():
    found = times(recorded())
    assert list(found) == ["Slow.on_train_batch_end", "pkg.Mine.on_train_end", "torch.save"]  # by total time
    slow = found["Slow.on_train_batch_end"]
    assert (slow.framework, slow.calls, slow.file, slow.line) == ("lightning", 40, "/p/train.py", 7)
    assert slow.total_s == pytest.approx(40 * 0.02 + 4 * 0.1)
    assert slow.mean_s == pytest.approx(slow.total_s / 40)
    assert slow.share == pytest.approx(slow.total_s / 10)
    save = found["torch.save"]
    assert (save.framework, save.callback, save.event, save.calls) == ("torch", "torch", "save", 1)
    assert (save.total_s, save.file) == (pytest.approx(0.3), "")


def test_seconds_a_step_are_of_the_measured_steps():
    found = times(recorded(), first=1)  # the first step of those with a checkpoint is left out
    assert found["Slow.on_train_batch_end"].step_s == pytest.approx(0.02 + 3 * 0.1 / 38, rel=0.05)
    assert found["pkg.Mine.on_train_end"].step_s == 0


def test_calls_on_another_thread_count_but_not_towards_the_step():
    r = Recording()
    for _ in range(20):
        train_step(r)
    other = Recording(thread=7, flags=0)
    other.ids = r.ids
    other.do(SLOW, 0.2)
    r.rows += other.rows
    found = times(r.process())
    assert (found["Slow.on_train_batch_end"].calls, found["Slow.on_train_batch_end"].step_s) == (1, 0)


def test_a_program_without_callbacks_has_none():
    r = Recording()
    for _ in range(20):
        train_step(r)
    assert times(r.process()) == {}
