"""Which steps a trial times: of a program that evaluates for much of its time, one evaluation in each."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from optimize_builders import make_context, make_finding, make_measurement

from unstall.optimize.diagnosis import Diagnosis, _Stop
from unstall.optimize.windows import period_of, steps_to_compare, window_of
from unstall.records.run import Between, StepTime

USUAL = {"quick": False, "by_call": False, "revisits": False}


def evaluating(*, step_s, each_s=0.0, every=1, **more):
    """Steps of ``step_s``, with an evaluation of ``each_s`` after every so many."""
    mean_s = step_s + each_s / every
    between = Between(mean_s=each_s / every, each_s=each_s, count=3) if each_s else None
    measurement = make_measurement(step=StepTime(mean_s, step_s, step_s), between=between, **more)
    return Diagnosis(make_context(measurement=measurement), "optimizer")


@pytest.mark.parametrize(
    ("program", "period", "steps"),
    [
        ({"step_s": 0.1}, None, 40),
        ({"step_s": 0.1, "each_s": 2.0, "every": 16}, 16, 32),  # whole periods
        ({"step_s": 0.2, "each_s": 9.0, "every": 16}, 16, 16),
        ({"step_s": 0.1, "each_s": 1.0, "every": 100}, None, 36),  # it takes little
        ({"step_s": 0.1, "each_s": 40.0, "every": 100}, None, 12),  # they are too far apart
    ],
)
def test_a_trial_holds_whole_periods_of_what_recurs(program, period, steps):
    state = evaluating(**program)
    assert period_of(state) == period
    window = window_of(state, **USUAL)
    assert (window.kind, window.steps, window.fold) == ("optimizer", steps, None)


def test_a_trial_of_steps_that_become_longer_reaches_further():
    usual, slower = evaluating(step_s=0.01), evaluating(step_s=0.01)
    slower.report.findings.append(make_finding("slows-down"))
    assert window_of(slower, **USUAL).steps == 3 * window_of(usual, **USUAL).steps


def test_what_recurs_is_compared_once_and_what_anybody_wrote_as_long_as_it_is_timed():
    plain, evaluates = evaluating(step_s=0.1), evaluating(step_s=0.1, each_s=5.0, every=50)
    assert steps_to_compare(plain, quick=False, by_anybody=False) == 0
    assert steps_to_compare(evaluates, quick=False, by_anybody=False) == 51
    assert steps_to_compare(plain, quick=False, by_anybody=True) > steps_to_compare(plain, quick=True, by_anybody=True)


def test_calls_and_samples_that_are_met_again_are_timed_as_they_are():
    state = evaluating(step_s=0.1, each_s=5.0, every=50)
    by_call = window_of(state, quick=False, by_call=True, revisits=False)
    assert (by_call.kind, by_call.steps) == ("forward", None)
    again = window_of(state, quick=True, by_call=False, revisits=True)
    assert again.fold and again.steps == 10


class Run:
    """A session that stands still at times; seconds since its loop began."""

    def __init__(self, pauses, steps=1000):
        self.pauses, self.steps, self.began, self.wanted, self.now = pauses, steps, 0.0, None, 0.0

    def stands_still(self, now):
        return any(begin <= now < end for begin, end in self.pauses)


@pytest.mark.parametrize(
    ("pauses", "ends"),
    [
        ([], 12.1),
        ([(2.0, 3.0)], 12.1),  # little
        ([(3.0, 9.0), (12.0, 18.0)], 18.0),  # until the second is over
        ([(3.0, 9.0)], 19.7),  # until one is little
        ([(3.0, 100.0)], 48.0),  # it does not end
    ],
)
def test_a_diagnosis_waits_for_two_evaluations_where_these_take_much_of_it(pauses, ends):
    run = Run(pauses)
    stop = _Stop(12.0, clock=lambda: run.now)
    while run.wanted is None:
        stop(run)
        run.now = round(run.now + 0.1, 1)
    assert run.now - 0.1 == pytest.approx(ends, abs=0.25)


def test_a_session_without_steps_is_not_for_ever():
    stop = _Stop(12.0, clock=lambda: 1e6)
    session = SimpleNamespace(steps=0, began=0.0, wanted=None, stands_still=lambda now: False)
    stop(session)
    assert session.wanted == 1


@pytest.mark.parametrize(("step_s", "steps"), [(0.001, 16), (0.2, 7), (2.0, 6)])
def test_few_steps_have_samples_that_are_all_new(step_s, steps):
    window = window_of(evaluating(step_s=step_s, each_s=2.0, every=32), **USUAL, all_new=True)
    assert (window.kind, window.warmup, window.steps, window.fold) == ("optimizer", 4, steps, None)
