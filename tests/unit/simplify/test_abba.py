"""ABBA blocks over made-up programs: what counts, what is repeated, when it ends."""

import numpy as np
from simplify_builders import PACE, VirtualClock, make_segment

from unstall.simplify.abba import StoppingRule, run_blocks
from unstall.simplify.budget import ExperimentBudget
from unstall.simplify.experiment import Experiment, ExperimentResult
from unstall.simplify.segment import Segment


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
        return make_segment(mean, others=next(self.others, 0.0), calls=calls)


def result_of(program, *, most=8, seconds=60.0):
    result = ExperimentResult(Experiment("without it", "stub"))
    for _ in run_blocks(program, result, PACE, ExperimentBudget(seconds, VirtualClock()), StoppingRule(most)):
        pass
    return result


def test_the_order_is_abba_and_the_ratio_is_found():
    program = Program(0.4, 0.1)
    result = result_of(program)
    assert program.course[:8] == ["base", "arm", "arm", "base"] * 2
    assert result.ratio.low <= 4 <= result.ratio.high
    assert result.state == "measured"
    assert result.is_tight(0.1)


def test_little_noise_needs_few_blocks_much_noise_all():
    assert len(result_of(Program(0.2, 0.1, noise=0.005)).log_ratios) < 8
    noisy = result_of(Program(0.1, 0.1, noise=0.3))
    assert len(noisy.log_ratios) == 8
    assert noisy.state == "inconclusive"


def test_no_effect_that_is_known_well_is_a_result():
    result = result_of(Program(0.1, 0.1, noise=0.005))
    assert result.state == "measured"
    assert not result.ratio.excludes()


def test_a_block_in_which_others_came_is_repeated():
    result = result_of(Program(0.2, 0.1, others=[0, 0, 1.5, 0]))
    assert len(result.disturbed_log_ratios) == 1
    assert len(result.log_ratios) >= 3


def test_others_that_are_always_there_are_borne():
    result = result_of(Program(0.2, 0.1, others=[1.0] * 100))
    assert len(result.disturbed_log_ratios) == 0


def test_where_all_blocks_are_disturbed_they_count_in_the_end():
    result = result_of(Program(0.2, 0.1, others=[0, 1] * 100))
    assert result.log_ratios == []
    assert len(result.disturbed_log_ratios) == 16
    assert result.ratio.low <= 2 <= result.ratio.high


def test_a_program_that_takes_another_course_fails_the_trial():
    result = result_of(Program(0.2, 0.1, arm_calls=3.0))
    assert "behaves differently" in result.failure
    assert result.state == "failed"
    assert result.ratio is None


def test_the_time_is_kept():
    assert len(result_of(Program(0.2, 0.1, noise=0.3), seconds=-1).log_ratios) == 1


def test_whole_epochs_are_counted_wherever_the_segment_was_cut():
    durations = np.array([1.0, 4.0, 1.0, 1.0, 4.0, 1.0])
    one = Segment(durations, durations > 2, {}, 0, 1)
    assert one.mean_s(whole_epochs=True) == 2.0
    assert one.mean_s(whole_epochs=False) == 1.0


def test_a_segment_of_one_epoch_end_counts_all_its_steps():
    durations = np.array([1.0, 1.0, 4.0])
    assert Segment(durations, durations > 2, {}, 0, 1).mean_s(whole_epochs=True) == 2.0
