"""What is tried, in which order and for how long: a program in virtual time, whose parts are known."""

import numpy as np
import pytest
from simplify_builders import (
    VirtualClock,
    VirtualProcess,
    VirtualStarter,
    make_finding,
    make_first_run,
    make_measurement,
    make_report,
)

from unstall.records.measurements import LoaderMeasurement
from unstall.simplify import plan
from unstall.simplify.budget import ExperimentBudget
from unstall.simplify.controlled_process import StopRequested
from unstall.simplify.simplifier import Simplifier

PARTS = {"data": 0.02, "log": 0.06, "backward": 0.01, "forward": 0.01}


class Setting:
    """A simplifier on a virtual program, and what happened."""

    def __init__(self, *, parts=PARTS, budget_s=600.0, noise=0.01, report=None, loader=None, on_announce=None):
        self.clock, self.announced = VirtualClock(), []
        measurement = make_measurement(loader=loader, step_s=sum(parts.values()))
        report = report or make_report(make_finding(function="log"), phases={"backward": 0.1})
        self.starter = VirtualStarter(
            self.clock,
            make_first_run(report, measurement),
            lambda settings: VirtualProcess(self.clock, parts, noise=noise, factor=2.0 if settings else 1.0),
        )
        self.budget = ExperimentBudget(budget_s, self.clock)
        self.on_announce = on_announce

    def announce(self, what):
        self.announced.append(what)
        if self.on_announce is not None:
            self.on_announce(what)

    def run(self, *names):
        requested = [stub(name) for name in names]
        return Simplifier(self.starter, self.budget, self.announce).run(requested)


def stub(name):
    return plan.stub(plan.ReplaceableFunction(name, None))


def by_name(found):
    return {result.experiment.name: result for result in found.results}


def test_what_was_requested_is_measured_and_the_program_is_ended():
    setting = Setting()
    found = setting.run("log")
    (result,) = found.results
    assert result.ratio.low <= 0.1 / 0.04 <= result.ratio.high and result.state == "measured"
    assert found.runs == 2 and setting.starter.processes[0].log[-1] == "end"
    assert setting.announced[0] == "a first run, only watched"


def test_without_a_request_the_first_run_says_what_to_try():
    tried = by_name(Setting().run())
    assert next(iter(tried)) == "without log" and {"without backward", "backward +50%"} <= {*tried}
    assert tried["backward +50%"].ratio.value == pytest.approx(0.1 / 0.105, rel=0.02)
    assert tried["without backward, once without log"].ratio.value == pytest.approx(4 / 3, rel=0.02)


def test_a_program_without_steps_is_not_tried():
    setting = Setting()
    setting.starter.first = make_first_run(make_report(make_finding("healthy")))
    found = setting.run("log")
    assert found.measurement is None and found.results == [] and found.runs == 1


def test_a_program_with_a_loader_is_tried_with_cached_batches_and_other_settings():
    loader = LoaderMeasurement(workers=0, batches_per_step=1.0)
    found = Setting(loader=loader).run()
    assert "cached batches" in by_name(found)
    assert by_name(found)["1 worker"].ratio.value == pytest.approx(0.5, rel=0.02), "of a process of its own"


def test_each_gets_a_part_of_the_budget_and_what_does_not_fit_is_left():
    setting = Setting(noise=0.5, budget_s=60.0)
    found = setting.run("log", "data", "forward", "backward")
    assert [result.experiment.component for result in found.results] == ["log", "data", "forward"]
    assert [experiment.component for experiment in found.untried] == ["backward"]
    assert setting.budget.left > -5.0


def test_what_is_left_of_the_budget_goes_to_the_vaguest_ceiling():
    setting = Setting(parts={"log": 0.06, "data": 0.06, "forward": 0.02}, noise=0.15, budget_s=3600.0)
    found = setting.run("log", "data")
    assert any("narrower interval" in what for what in setting.announced)
    ceilings = [result for result in found.results if result.experiment.component]
    assert all(result.is_tight(0.05) or result.blocks >= 24 for result in ceilings)
    assert setting.budget.left > 0


def test_no_ceiling_takes_more_than_its_blocks():
    (result,) = Setting(noise=1.0, budget_s=1e5).run("log").results
    assert result.blocks < 24 + 8


def test_what_is_known_well_is_not_tried_again():
    setting = Setting(noise=0.001)
    setting.run("log")
    assert not any("narrower" in what for what in setting.announced)


def test_a_signal_ends_the_experiments_and_keeps_what_was_found():
    def interrupt(what):
        if "without data" in what:
            raise StopRequested

    setting = Setting(on_announce=interrupt)
    found = setting.run("log", "data")
    assert found.interrupted and [result.experiment.component for result in found.results] == ["log"]
    assert setting.starter.processes[0].log[-1] == "end"


def test_a_signal_that_ended_the_program_before_its_first_step_is_passed_on():
    setting = Setting()
    setting.starter.first = make_first_run(make_report(make_finding(function="log"), phases={}))
    assert setting.run().results == []

    def interrupted(seconds):
        raise StopRequested

    setting.starter.wait = interrupted
    with pytest.raises(StopRequested):
        setting.run()


def test_a_signal_before_anything_is_known_is_passed_on():
    setting = Setting()

    def interrupted():
        raise StopRequested

    setting.starter.watch = interrupted
    with pytest.raises(StopRequested):
        setting.run("log")


def test_the_interval_holds_the_truth_in_most_runs():
    inside = []
    for seed in range(20):
        setting = Setting(noise=0.1)
        setting.starter.make_process = lambda settings, seed=seed, clock=setting.clock: VirtualProcess(
            clock, PARTS, noise=0.1, seed=seed
        )
        (result,) = setting.run("log").results
        inside.append(result.ratio.low <= 2.5 <= result.ratio.high)
    assert np.mean(inside) >= 0.9
