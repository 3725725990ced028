"""One experiment on a program that may end, hang, or refuse: in virtual time."""

import numpy as np
import pytest
from simplify_builders import PACE, VirtualClock, VirtualProcess, VirtualStarter, make_measured, make_measurement

from unstall.child.experiments.interventions.env import EnvIntervention
from unstall.records.measurements import LoaderMeasurement
from unstall.simplify import plan
from unstall.simplify.abba import StoppingRule
from unstall.simplify.budget import ExperimentBudget
from unstall.simplify.controlled_process import ProgramEnded, ProgramStuck
from unstall.simplify.experiment import ExperimentResult
from unstall.simplify.experiment_runner import ExperimentRunner, pace_of

PARTS = {"log": 0.06, "rest": 0.04}


def run(experiment, *, refusals=None, loader=None, result=None, budget_s=600.0, device="cpu", **process):
    """The result, and the starter that made the processes."""
    clock = VirtualClock()
    starter = VirtualStarter(clock, None, lambda settings: VirtualProcess(clock, PARTS, **process), refusals=refusals)
    measured = make_measurement(loader=loader, device=device)
    runner = ExperimentRunner(starter, measured, PACE, ExperimentBudget(budget_s, clock))
    result = result or ExperimentResult(experiment)
    runner.run(result, StoppingRule())
    return result, starter


def stub(name):
    return plan.stub(plan.ReplaceableFunction(name, None))


@pytest.mark.parametrize(("device", "ratio"), [("cpu", 2.5), ("cuda:0", 2.0)])
def test_what_a_stub_takes_to_answer_is_left_out_unless_a_gpu_may_hide_it(device, ratio):
    result, _ = run(stub("log"), answering_s=0.01, device=device)
    assert result.ratio.value == pytest.approx(ratio, rel=0.03)
    assert result.answering_share == pytest.approx(0.2 if device == "cpu" else 0.0, rel=0.05)


def test_what_answers_cost_is_bounded():
    result = ExperimentResult(stub("log"), [0.0, 0.0, 0.0], arm_s=[0.01] * 3, answering_s=1.0)
    assert result.ratio.value == pytest.approx(5.0)


def test_a_program_that_ends_is_started_again():
    result, starter = run(stub("log"), lasts_s=9.0, error=ProgramEnded(0), noise=0.05)
    assert result.failure is None and result.state == "measured"
    assert len(starter.processes) > 1 and starter.processes[0].log[-1] == "end"


@pytest.mark.parametrize(
    ("error", "starts", "why"),
    [
        (ProgramEnded(0), 2, "give it more steps"),
        (ProgramEnded(1, "RuntimeError: no"), 1, "the program fails: RuntimeError: no"),
        (ProgramEnded(-11), 2, "exit code -11"),
        (ProgramStuck("it makes no steps"), 2, "is stuck: it makes no steps"),
    ],
)
def test_one_that_never_lasts_a_block_is_given_up(error, starts, why):
    result, starter = run(stub("log"), lasts_s=3.0, error=error)
    assert why in result.failure and len(starter.processes) == starts


def test_what_was_measured_before_is_kept_when_it_cannot_be_started_again():
    known = ExperimentResult(stub("log"), [0.9, 0.91, 0.92])
    result, _ = run(stub("log"), lasts_s=3.0, error=ProgramEnded(1), result=known)
    assert result.failure is None and len(result.log_ratios) == 3


def test_what_an_intervention_reports_ends_the_experiment():
    result, starter = run(stub("log"), problems={"log": "it is a generator"})
    assert result.failure == "it is a generator" and starter.processes[0].log == [], "no segment was taken"


@pytest.mark.parametrize(
    ("experiment", "what"),
    [(stub("nowhere"), "no function nowhere"), (plan.free(EnvIntervention), "nothing of the kind env")],
)
def test_what_is_not_alive_is_no_experiment(experiment, what):
    result, _ = run(experiment)
    assert f"{what} is alive" in result.failure


def test_the_functions_that_were_replaced_are_noted():
    result, _ = run(stub("log"))
    assert result.replaced == {"train.py:0"}


def test_settings_are_tried_in_a_second_process_in_turn():
    loader = LoaderMeasurement(workers=1)
    result, starter = run(plan.setting("workers", 2), loader=loader)
    base, arm = starter.processes
    assert starter.settings[1] == ({"loader": {"num_workers": 2}}, True)
    assert base.log[0] == "pause" and base.log[-1] == "resume" and arm.log[-1] == "end"
    assert result.ratio.value == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize(
    ("setting", "why"),
    [("workers", "no batch of a torch DataLoader"), ("ranks", "only the ranks that torchrun starts")],
)
def test_settings_without_a_place_in_the_program_are_refused(setting, why):
    result, starter = run(plan.setting(setting, 1), refusals={"ranks": "only the ranks that torchrun starts"})
    assert why in result.failure and starter.processes == []


def test_the_budget_is_kept():
    result, _ = run(stub("log"), noise=0.5, budget_s=10.0)
    assert result.blocks < 5


def test_segments_hold_whole_epochs_where_these_are_short():
    pace = pace_of(make_measured(make_measurement(step_s=0.1), gaps=(9, 19, 29)))
    assert pace.whole_epochs and pace.steps == 20
    long = pace_of(make_measured(make_measurement(step_s=1.0), gaps=(9, 19, 29)))
    assert not long.whole_epochs and long.steps == 4


def test_a_condition_settles_until_the_queues_of_the_workers_are_through():
    loader = LoaderMeasurement(workers=4, prefetch_factor=3, batches_per_step=2.0, service_s=0.5)
    pace = pace_of(make_measured(make_measurement(loader=loader)))
    assert pace.settle_steps == 1 + 4 * 3 / 2 and pace.settle_s > 3 * 0.5
    assert pace_of(make_measured(make_measurement())).settle_s == 0
    assert np.isfinite(pace.block_s)
