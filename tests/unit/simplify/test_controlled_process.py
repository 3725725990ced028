"""A running program under control: switching, settling, measuring, ending; the program itself is in virtual time."""

import json
import signal

import pytest
from simplify_builders import VirtualClock, VirtualSession, make_recording

from unstall.child.experiments.switchboard import Switchboard
from unstall.child.watcher import CALL
from unstall.records.vocabulary import Tick
from unstall.simplify.controlled_process import ControlledProcess, Patience, ProgramEnded, ProgramStuck, StopRequested

STEP_S = 0.1


class Tap:
    """The ticks of one process of the program."""

    def __init__(self, pid):
        self.pid, self.control, self.ticks = pid, 0, [0] * len(Tick)

    @property
    def steps(self):
        return self.ticks[Tick.OPTIMIZER]


class Program:
    """A program of some ranks. While unstall waits it makes steps, and applies what is on the board at a step."""

    def __init__(self, directory, clock, *, ranks=1, starts_after_s=1.0, learning=0, obeys=True):
        self.directory, self.clock, self.pid, self.status = directory, clock, 1, None
        self.taps = [Tap(100 + rank) for rank in range(ranks)]
        self.began, self.starts_after_s, self.learning, self.obeys = clock(), starts_after_s, learning, obeys
        self.frozen, self.killed, self.finished, self.ends_at = False, [], False, float("inf")
        self.interrupted = self.abandoned = False
        self.board = Switchboard(directory, clock=lambda: int(clock() * 1e9))
        self.session = VirtualSession()
        self.session.stop = self.stop

    def wait(self, seconds):
        if self.interrupted:
            raise StopRequested
        self.clock.now += seconds
        alive = self.clock() - self.began - self.starts_after_s
        if alive < 0 or self.frozen or self.status is not None:
            return
        for tap in self.taps:
            tap.ticks[Tick.OPTIMIZER] = int(alive / STEP_S) + 1
        self.session.main, self.session.taps = self.taps[0], dict(enumerate(self.taps))
        generation, condition = self.board.read()
        for tap in self.taps:
            if tap.control == CALL and tap.steps >= condition.get("at", 0):
                tap.control = 0
                self.board.applied(generation)
        if self.learning:
            self.learning -= 1
            self.board.count_real_call()

    def poll(self):
        if self.clock() > self.ends_at:
            self.status = self.status or 0
        return self.status is None

    def stop(self):
        if self.obeys:
            self.status = 0

    def kill(self, number):
        self.killed.append(number)
        self.status = -number

    def finish(self):
        self.finished = True

    def abandon(self):
        self.abandoned = True

    def emit(self, **fact):
        with (self.directory / "info-100.jsonl").open("a") as file:
            file.write(json.dumps({"t": 0.0, **fact}) + "\n")


class Follower:
    """Reads the recording that the program would have written by now."""

    def __init__(self, clock):
        self.clock, self.forgot = clock, 0

    def forget(self):
        self.forgot += 1

    def since(self, t):
        return make_recording(int((self.clock() - t) / STEP_S), STEP_S, begin=t)


@pytest.fixture
def start(tmp_path):
    """Starts a program; gives it and its controlled process."""

    def started(*, warm=True, patience=Patience(poll_s=0.01), **settings):  # noqa: B008
        clock = VirtualClock()
        board = Switchboard(tmp_path, create=True)
        program = Program(tmp_path, clock, **settings)
        program.follower = Follower(clock)
        output = tmp_path / "output.txt"
        process = ControlledProcess(
            program,
            board,
            output,
            program.wait,
            kind="optimizer",
            clock=clock,
            patience=patience,
            follow=lambda directory, pid: program.follower,
        )
        if warm:
            process.warm_up(5, 0.5)
        return program, process

    return started


def test_it_is_warm_after_some_steps_and_seconds(start):
    program, process = start(warm=False)
    process.warm_up(5, 3.0)
    assert process.steps >= 5 and program.clock() - program.began > 3.0
    assert process.recording.name == "rec-100.bin"


def test_a_program_that_makes_no_step_is_stuck(start):
    _, process = start(warm=False, starts_after_s=1e6)
    with pytest.raises(ProgramStuck, match="no step was seen"):
        process.warm_up(5, 0.5)


def test_a_program_that_ends_says_how_and_with_which_words(start):
    program, process = start()
    process.output.write_text("Traceback ...\nValueError: no more\n")
    program.ends_at, program.status = program.clock(), 1
    with pytest.raises(ProgramEnded) as caught:
        process.switch([])
    assert (caught.value.status, caught.value.last_line) == (1, "ValueError: no more")


def test_a_condition_is_in_force_once_the_main_process_says_so(start):
    program, process = start()
    process.switch([{"kind": "cached"}])
    generation, condition = program.board.read()
    assert condition == {"interventions": [{"kind": "cached"}]} and process.board.in_force[0] == generation
    assert program.follower.forgot == 1


def test_ranks_switch_at_the_same_later_step(start):
    program, process = start(ranks=2)
    before = process.steps
    process.switch([])
    assert program.board.read()[1]["at"] == before + 3 <= process.steps


def test_a_program_that_never_switches_is_stuck(start):
    program, process = start()
    program.frozen = True
    with pytest.raises(ProgramStuck, match="makes no steps"):
        process.switch([], patience_s=5.0)


def test_steps_pass_uncounted_until_stubs_have_their_answers(start):
    program, process = start(learning=150)
    process.switch([])
    process.settle(2, 0.0, STEP_S)
    assert program.learning == 0
    assert process.run(3, 0.0, STEP_S).real_calls == 0


def test_stubs_that_never_have_them_are_not_waited_for_without_end(start):
    _, process = start(learning=10**6, patience=Patience(poll_s=0.01, learning_steps=5))
    process.switch([])
    process.settle(1, 0.0, STEP_S)
    assert process.run(3, 0.0, STEP_S).real_calls > 0


def test_a_segment_has_so_many_whole_steps_after_the_switch(start):
    program, process = start()
    process.switch([])
    process.settle(1, 1.0, STEP_S)
    began = program.clock()
    segment = process.run(10, 2.0, STEP_S)
    assert len(segment.durations) >= 10 and segment.durations.mean() == pytest.approx(STEP_S)
    assert began <= segment.began < segment.ended <= program.clock() and program.clock() - began >= 2.0
    assert process.run(3, 0.0, STEP_S).began >= segment.ended, "the next one follows on"


def test_it_is_ended_once_by_unwinding(start):
    program, process = start()
    with process:
        pass
    process.end()
    assert program.finished and program.killed == []


def test_one_that_does_not_end_is_killed(start):
    program, process = start(obeys=False, patience=Patience(poll_s=0.01, end_s=-1.0))
    process.end()
    assert program.killed == [signal.SIGKILL] and program.finished


def test_nobody_waits_for_it_after_a_signal(start):
    program, process = start(obeys=False)
    program.interrupted = True
    process.end()
    assert program.abandoned and not program.finished
