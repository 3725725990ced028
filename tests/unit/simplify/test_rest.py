"""What a component costs the rest of the step."""

import numpy as np

from unstall.simplify import rest
from unstall.simplify.segment import Segment
from unstall.simplify.trial import Outcome, Trial


def segment(**milliseconds):
    phases = {name: ms / 1e3 for name, ms in milliseconds.items()}
    step = np.full(5, sum(phases.values()))
    return Segment(step, np.zeros(5, bool), phases, {}, 0.0, 1.0)


def outcome(base, arm):
    made = Outcome(Trial("without it", "stub", arm=({"kind": "stub"},)))
    made.base_segments, made.arm_segments = base, arm
    return made


def test_what_is_faster_without_it_is_told():
    base = [segment(env=1.3, backward=0.46, forward=0.2)] * 2
    arm = [segment(env=0.05, backward=0.2, forward=0.1)] * 2
    line = rest.told(outcome(base, arm))
    assert "takes 0.66 ms beside it, 0.3 ms without it (backward: 0.46 and 0.2 ms)" in line


def test_one_segment_that_others_disturbed_moves_nothing():
    calm, busy = segment(env=1.3, backward=0.2), segment(env=1.4, backward=5.0)
    assert rest.told(outcome([calm, calm, busy], [segment(env=0.05, backward=0.2)])) is None


def test_a_rest_that_stays_as_it_is_needs_no_word():
    assert rest.told(outcome([segment(env=1.3, backward=0.2)], [segment(env=0.1, backward=0.19)])) is None


def test_a_trial_without_segments_tells_nothing():
    assert rest.told(outcome([], [])) is None
