"""ABBA blocks over made-up programs: what counts, what is repeated, when it ends."""

import time

import numpy as np

from unstall.simplify.blocks import Enough, Pace, run_blocks
from unstall.simplify.segment import Segment
from unstall.simplify.trial import Outcome, Trial

PACE = Pace(step_s=0.1, steps=4, seconds=0.5, settle_steps=1, settle_s=0.0, cores=2)


def segment(mean, *, others=0.0, calls=1.0, real=0):
    durations = np.full(5, mean)
    return Segment(durations, np.zeros(5, bool), {"forward": calls}, 0.0, 1.0, others, real)


class Program:
    """A program of two conditions; ``others`` are the cores taken from it in each segment, in turn."""

    def __init__(self, base, arm, *, noise=0.01, others=(), arm_calls=1.0):
        self.means = {"base": base, "arm": arm}
        self.generator = np.random.default_rng(0)
        self.noise, self.others, self.arm_calls = noise, iter(others), arm_calls
        self.course = []

    def to_base(self):
        self.condition = "base"

    def to_arm(self):
        self.condition = "arm"

    def segment(self):
        self.course.append(self.condition)
        mean = self.means[self.condition] * np.exp(self.generator.normal(0, self.noise))
        calls = self.arm_calls if self.condition == "arm" else 1.0
        return segment(mean, others=next(self.others, 0.0), calls=calls)


def outcome_of(program, *, most=8, deadline=None):
    outcome = Outcome(Trial("without it", "stub", arm=({"kind": "stub"},)))
    for _ in run_blocks(program, outcome, PACE, deadline or time.monotonic() + 60, Enough(most)):
        pass
    return outcome


def test_the_order_is_abba_and_the_ratio_is_found():
    program = Program(0.4, 0.1)
    outcome = outcome_of(program)
    assert program.course[:8] == ["base", "arm", "arm", "base"] * 2
    assert outcome.ratio.low <= 4 <= outcome.ratio.high
    assert outcome.state == "measured"
    assert outcome.is_tight(0.1)


def test_little_noise_needs_few_blocks_much_noise_all():
    assert len(outcome_of(Program(0.2, 0.1, noise=0.005)).log_ratios) < 8
    noisy = outcome_of(Program(0.1, 0.1, noise=0.3))
    assert len(noisy.log_ratios) == 8
    assert noisy.state == "inconclusive"


def test_no_effect_that_is_known_well_is_a_result():
    outcome = outcome_of(Program(0.1, 0.1, noise=0.005))
    assert outcome.state == "measured"
    assert not outcome.ratio.excludes()


def test_a_block_in_which_others_came_is_repeated():
    outcome = outcome_of(Program(0.2, 0.1, others=[0, 0, 1.5, 0]))
    assert outcome.disturbed == 1
    assert len(outcome.log_ratios) >= 3


def test_others_that_are_always_there_are_borne():
    outcome = outcome_of(Program(0.2, 0.1, others=[1.0] * 100))
    assert outcome.disturbed == 0


def test_where_all_blocks_are_disturbed_they_count_in_the_end():
    outcome = outcome_of(Program(0.2, 0.1, others=[0, 1] * 100))
    assert outcome.log_ratios == []
    assert outcome.disturbed == 16
    assert outcome.ratio.low <= 2 <= outcome.ratio.high


def test_a_program_that_takes_another_course_fails_the_trial():
    outcome = outcome_of(Program(0.2, 0.1, arm_calls=3.0))
    assert "another course" in outcome.failure
    assert outcome.state == "failed"
    assert outcome.ratio is None


def test_the_time_is_kept():
    assert len(outcome_of(Program(0.2, 0.1, noise=0.3), deadline=time.monotonic() - 1).log_ratios) == 1


def test_whole_epochs_are_counted_wherever_the_segment_was_cut():
    durations = np.array([1.0, 4.0, 1.0, 1.0, 4.0, 1.0])
    one = Segment(durations, durations > 2, {}, 0, 1)
    assert one.mean_s(whole_epochs=True) == 2.0
    assert one.mean_s(whole_epochs=False) == 1.0


def test_a_segment_of_one_epoch_end_counts_all_its_steps():
    durations = np.array([1.0, 1.0, 4.0])
    assert Segment(durations, durations > 2, {}, 0, 1).mean_s(whole_epochs=True) == 2.0
