"""Watching from outside: steps counted, stopping after enough of them, asking for probes, falling back."""

from __future__ import annotations

import os
import shutil
import time

import pytest
from recorders import load, silence

from unstall.benchmark import sampler as sampler_module
from unstall.benchmark.resources import ResourceMonitor
from unstall.benchmark.session import Session, steps_of
from unstall.child.tap import Tap
from unstall.child.watcher import PROBE, SAMPLE, STOP
from unstall.records.observations import Frame, ResourcePoint, StackSample
from unstall.records.vocabulary import Tick


def ticks(**counts):
    kinds = {
        "explicit": Tick.EXPLICIT,
        "env": Tick.ENV,
        "optimizer": Tick.OPTIMIZER,
        "request": Tick.REQUEST,
        "forward": Tick.FORWARD,
        "data": Tick.DATA,
        "backward": Tick.BACKWARD,
    }
    found = [0] * len(Tick)
    for name, count in counts.items():
        found[kinds[name]] = count
    return found


@pytest.mark.parametrize(
    "seen, steps",
    [
        ({}, 0),
        ({"explicit": 5, "optimizer": 50, "env": 900}, 5),
        ({"env": 100, "optimizer": 10, "forward": 110}, 100),
        ({"env": 1, "optimizer": 10, "forward": 10}, 10),
        ({"optimizer": 10, "forward": 40, "data": 40}, 10),
        ({"optimizer": 10, "request": 2, "forward": 90}, 10),
        ({"request": 5, "forward": 90, "data": 5}, 5),
        ({"forward": 30, "data": 10}, 10),
        ({"forward": 10, "data": 30}, 10),
        ({"forward": 30}, 30),
        ({"forward": 90, "data": 90, "backward": 20}, 20),
        ({"forward": 90, "backward": 2}, 90),
        ({"forward": 30, "backward": 90}, 30),
        ({"backward": 90}, 90),
        ({"backward": 90, "data": 30}, 90),
        ({"forward": 90, "backward": 20, "optimizer": 10}, 10),
        ({"data": 30}, 30),
    ],
)
def test_steps_are_counted_by_what_most_likely_counts_them(seen, steps):
    assert steps_of(ticks(**seen)) == steps


class Program:
    """A recording in this process, as a program under observation would write it."""

    def __init__(self, api, directory):
        self.api, self.path = api, directory / f"rec-{os.getpid()}.bin"
        api.open(str(self.path))
        self.tap = Tap(self.path)

    def steps(self, count):
        for _ in range(count):
            self.api.tick(Tick.OPTIMIZER, 1, None)


@pytest.fixture
def program(tmp_path):
    api = load("fallback")
    silence(api)
    yield Program(api, tmp_path)
    silence(api)


class Clock:
    """Moved by the test."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


class Memory(ResourceMonitor):
    """Of a program that takes as much as the test says."""

    def __init__(self, taken):
        super().__init__(os.getpid())
        self._taken = taken

    def rss_bytes(self):
        return self._taken()


def test_a_session_counts_the_programs_steps(program, tmp_path):
    watch = Session(os.getpid(), tmp_path, sampling=False)
    watch.poll()
    assert watch.steps == 0
    program.steps(12)
    watch.poll()
    assert watch.steps == 12
    seen = watch.finish()
    assert seen.points and seen.machine
    assert seen.ended >= seen.began
    assert not seen.stopped


def test_files_that_are_no_recordings_yet_are_passed_over(program, tmp_path):
    (tmp_path / "rec-99999999.bin").write_bytes(b"")
    watch = Session(os.getpid(), tmp_path, sampling=False)
    program.steps(3)
    watch.poll()
    assert watch.steps == 3
    watch.finish()


@pytest.mark.parametrize("made_ago_s", [0, 60], ids=["within a tick of the clock", "later"])
def test_a_recording_that_is_begun_later_is_found(program, tmp_path, made_ago_s):
    watch = Session(os.getpid(), tmp_path, sampling=False)
    program.steps(3)
    then = time.time() - made_ago_s
    os.utime(tmp_path, (then, then))
    watch.poll()
    program.steps(4)
    shutil.copy(program.path, tmp_path / "rec-99999998.bin")
    if not made_ago_s:  # as the clock that folders bear may stand still between two files
        os.utime(tmp_path, (then, then))
    watch.poll()
    assert watch.steps == 7 and len(watch.taps) == 2
    watch.finish()


def test_a_folder_that_somebody_removes_ends_nothing(program, tmp_path):
    watch = Session(os.getpid(), tmp_path, sampling=False)
    program.steps(3)
    watch.poll()
    shutil.rmtree(tmp_path)
    program.steps(4)
    watch.poll()
    assert watch.steps == 7
    watch.finish()


@pytest.mark.parametrize(("steps", "age_s", "pause_s"), [(None, 5, 0.1), (None, 60, 0.25), (100, 60, 0.1)])
def test_a_long_run_is_polled_less_often_unless_it_is_to_stop_at_a_step(tmp_path, clock, steps, age_s, pause_s):
    watch = Session(os.getpid(), tmp_path, sampling=False, steps=steps, clock=clock)
    clock.now += age_s
    assert watch.poll_s == pause_s
    watch.finish()


def test_a_run_is_stopped_once_enough_steps_were_seen(program, tmp_path):
    watch = Session(os.getpid(), tmp_path, steps=10, sampling=False)
    program.steps(5)
    watch.poll()
    assert not watch.stopped
    for _ in range(20):
        program.steps(1)
        watch.poll()
    assert watch.stopped
    assert program.tap.control == STOP
    watch.finish()


def test_without_a_wish_a_run_is_never_stopped(program, tmp_path):
    watch = Session(os.getpid(), tmp_path, sampling=False)
    for _ in range(10):
        program.steps(1000)
        watch.poll()
    assert not watch.stopped
    assert program.tap.control != STOP
    watch.finish()


def test_the_rate_is_that_of_the_last_seconds(program, tmp_path, clock):
    watch = Session(os.getpid(), tmp_path, sampling=False, clock=clock)
    watch.poll()
    assert watch.rate is None
    for _ in range(4):
        clock.now += 2.5
        program.steps(50)
        watch.poll()
    assert watch.rate == pytest.approx(20.0)
    watch.finish()


def test_what_a_program_keeps_is_asked_for_and_steps_until_it_answers_are_not_clean(program, tmp_path, clock):
    watch = Session(os.getpid(), tmp_path, sampling=False, clock=clock)
    program.steps(10)
    watch.poll()
    clock.now += 1.0
    watch.poll()
    assert program.tap.control == PROBE  # one look is always taken, to compare with
    before = watch.clean_steps
    program.steps(10)
    watch.poll()
    assert watch.clean_steps == before
    program.api.control(0)  # the program has answered
    watch.poll()
    program.steps(10)
    watch.poll()
    assert watch.clean_steps == before + 10
    assert watch.disturbed == []  # it may have stood still for long first: the answer says how long it took
    watch.finish()


@pytest.mark.parametrize("grows", [True, False])
def test_more_probes_are_for_memory_that_grows(program, tmp_path, clock, grows):
    watch = Session(
        os.getpid(),
        tmp_path,
        sampling=False,
        clock=clock,
        resources=Memory(lambda: int((clock.now - 1000) * 100e6) if grows else 500),
    )
    asked = 0
    program.steps(10)
    for _ in range(200):
        clock.now += 0.25
        watch.poll()
        asked += program.tap.control == PROBE
        program.api.control(0)
    assert (asked > 3) if grows else (asked == 1)
    watch.finish()


def test_more_probes_are_for_steps_that_take_longer(program, tmp_path, clock):
    watch = Session(os.getpid(), tmp_path, sampling=False, clock=clock, resources=Memory(lambda: 500))
    asked = 0
    program.steps(10)
    for turn in range(100):
        clock.now += 0.25
        program.steps(max(1, 20 - turn // 2))
        watch.poll()
        asked += program.tap.control == PROBE
        program.api.control(0)
    assert asked > 3
    watch.finish()


def test_the_time_before_the_loop_does_not_hide_that_its_steps_take_longer(program, tmp_path, clock):
    watch = Session(os.getpid(), tmp_path, sampling=False, clock=clock, resources=Memory(lambda: 500))
    watch.poll()
    clock.now += 1.9  # a window for the rate is nearly over when the first steps come
    asked = 0
    for turn in range(50):
        clock.now += 0.1
        program.steps(40 if turn < 15 else 20)
        watch.poll()
        asked += program.tap.control == PROBE
        program.api.control(0)
    assert asked > 1
    watch.finish()


def test_a_start_that_held_the_first_steps_up_does_not_hide_that_they_take_longer(program, tmp_path, clock):
    """Libraries that come in with the first step: two seconds of few steps."""
    watch = Session(os.getpid(), tmp_path, sampling=False, clock=clock, resources=Memory(lambda: 500))
    asked = 0
    for turn in range(90):
        clock.now += 0.1
        program.steps(1 if turn < 25 else 40 if turn < 40 else 20)
        watch.poll()
        asked += program.tap.control == PROBE
        program.api.control(0)
    assert asked > 1
    watch.finish()


def test_a_program_that_does_not_answer_is_not_waited_for(program, tmp_path, clock):
    watch = Session(os.getpid(), tmp_path, sampling=False, clock=clock)
    program.steps(10)
    watch.poll()
    clock.now += 1.0
    watch.poll()
    clock.now += 60.0
    watch.poll()
    before = watch.clean_steps
    program.steps(10)
    watch.poll()
    assert watch.clean_steps == before + 10
    watch.finish()


class Sampler:
    """A sampler that failed, or one that has all it needs."""

    enough = sampler_module.Sampler.enough

    def __init__(self, failure=None, *, done=False):
        self.failure, self.done = failure, done
        self.enabled, self.process_pid = False, None
        self.samples, self.windows, self.main_samples = [], [(1.0, 2.0)], 0
        self.stacks, self.before, self.pauses = [], [], []
        self.lost = 0
        self.closed = False

    forget = sampler_module.Sampler.forget

    def poll(self, now):
        pass

    def close(self):
        self.closed = True


def test_where_the_sampler_may_not_attach_the_program_samples_itself(program, tmp_path):
    watch = Session(os.getpid(), tmp_path, sampling=False)
    watch.sampler = Sampler("not permitted")
    watch.poll()
    assert program.tap.control == 0  # no process runs a loop yet
    program.steps(3)
    watch.poll()
    assert program.tap.control == SAMPLE
    program.api.control(0)
    watch.poll()
    assert program.tap.control != SAMPLE  # asked once
    seen = watch.finish()
    assert seen.sampling_failure == "not permitted"
    assert (seen.sampled, seen.disturbed) == ([(1.0, 2.0)], [])
    assert watch.sampler.closed


def test_stacks_are_sampled_after_warm_up(program, tmp_path, clock):
    watch = Session(os.getpid(), tmp_path, sampling=False, clock=clock)
    watch.sampler = Sampler()
    watch.poll()
    assert not watch.sampler.enabled
    program.steps(100)
    watch.poll()
    assert watch.sampler.enabled
    watch.finish()


@pytest.mark.parametrize(("seen", "wanted", "goes_on"), [(120, 20, False), (119, 20, True), (120, 200, True)])
def test_no_window_is_opened_once_only_steps_without_one_are_lacking(program, tmp_path, clock, seen, wanted, goes_on):
    watch = Session(os.getpid(), tmp_path, sampling=False, steps=wanted, clock=clock)
    watch.sampler = Sampler()
    program.steps(10)
    watch.poll()
    watch.sampler.process_pid = os.getpid()  # within a window: no step is a clean one
    program.steps(90)
    watch.poll()
    watch.sampler.main_samples = seen
    watch.poll()
    assert watch.sampler.enabled is goes_on
    assert not watch.stopped
    watch.sampler.process_pid = None
    program.steps(3000)
    watch.poll()
    assert watch.stopped is (seen >= 120)
    watch.finish()


def test_the_sampler_knows_when_the_loop_stands_still(program, tmp_path, clock):
    watch = Session(os.getpid(), tmp_path, sampling=False, clock=clock)
    watch.sampler = Sampler()
    told = []
    for seconds, steps in ((1.0, 0), (0.1, 20), (2.5, 50), (0.4, 0), (0.2, 0), (0.1, 5), (0.1, 0)):
        clock.now += seconds
        program.steps(steps)
        watch.poll()
        told.append(watch.sampler.in_pause)
    assert told == [False, False, False, False, True, False, False]  # half a second is ten of these steps
    watch.finish()


def in_line(number):
    return StackSample(7, "MainThread", (Frame("<module>", "/home/me/train.py", number),), 1)


class Windows(Sampler):
    """A sampler whose windows last a second each, with a sample in each."""

    def __init__(self):
        super().__init__()
        self.number = 0

    def poll(self, now):
        if self.process_pid is not None:
            self.process_pid = None
            self.samples.append(in_line(self.number))
        elif self.enabled:
            self.number += 1
            self.process_pid = 1000 + self.number


def test_the_first_window_in_the_loop_counts(program, tmp_path, clock):
    """A short run may have no other."""
    watch = Session(os.getpid(), tmp_path, sampling=False, clock=clock)
    watch.sampler = Windows()
    watch.poll()
    program.steps(100)
    watch.poll()  # a window begins
    watch.poll()
    assert watch.finish().samples == [in_line(1)]


def test_a_window_that_the_loop_begins_in_does_not(program, tmp_path, clock):
    watch = Session(os.getpid(), tmp_path, sampling=False, clock=clock)
    watch.sampler = Windows()
    clock.now += 30
    for _ in range(3):  # two windows begin before the loop does
        watch.poll()
    program.steps(100)
    watch.poll()  # the second one ends
    for _ in range(2):
        watch.poll()
    seen = watch.finish()
    assert seen.samples == [in_line(3)]


def test_a_program_without_steps_is_sampled_all_the_same(program, tmp_path, clock):
    watch = Session(os.getpid(), tmp_path, sampling=False, clock=clock)
    watch.sampler = Sampler()
    clock.now += 30
    watch.poll()
    assert watch.sampler.enabled
    watch.finish()


def test_a_stop_waits_for_samples_but_not_for_ever(program, tmp_path, clock):
    watch = Session(os.getpid(), tmp_path, steps=5, sampling=False, clock=clock)
    watch.sampler = Sampler()
    program.steps(100)
    watch.poll()
    assert not watch.stopped
    clock.now += 120
    watch.poll()
    assert watch.stopped
    watch.finish()


def test_memory_is_summed_over_the_last_look(program, tmp_path):
    watch = Session(os.getpid(), tmp_path, sampling=False)
    watch.resources.points = [
        ResourcePoint(t=1.0, pid=1, cpu_s=0, run_delay_s=0, rss_bytes=900),
        ResourcePoint(t=2.0, pid=1, cpu_s=0, run_delay_s=0, rss_bytes=30),
        ResourcePoint(t=2.0, pid=2, cpu_s=0, run_delay_s=0, rss_bytes=4),
    ]
    assert watch.resources.rss_bytes() == 34
    watch.finish()
