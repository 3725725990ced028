"""The order of runs, the pairs that are set aside, the budget; with runs that are made up."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from unstall.cli.gate import EXIT_CODES
from unstall.records.comparison import GatePair, GateResult, PhaseMedians, Slowdown
from unstall.records.measurements import Measurement
from unstall.records.model import ModelMeasurement
from unstall.records.run import StepTime
from unstall.repeat.arms import Arm, ArmRun, relative_error, steps_for
from unstall.repeat.gate import Gate, RecordedBaseline
from unstall.repeat.sequential import SequentialPlan, SequentialResult
from unstall.report import gate_view
from unstall.runs.gate import notes_of
from unstall.statistics import Ratio

_A, _B = Arm("baseline", ["train.py"], Path("a")), Arm("candidate", ["train.py"], Path("b"))


class _Machine:
    """Runs arms as a quiet machine would; ``loads``: what others take, one a run."""

    def __init__(self, slower=1.0, loads=(), noise=0.002):
        self.order, self.slower, self.loads = [], slower, list(loads)
        self.generator, self.noise = np.random.default_rng(0), noise

    def __call__(self, arm, number):
        assert number == len(self.order)
        self.order.append(arm.name[0])
        step = math.exp(self.noise * self.generator.standard_normal()) * (self.slower if arm is _B else 1.0)
        load = self.loads.pop(0) if self.loads else 0.0
        return ArmRun(step, 50, {"forward": 0.6, "data_wait": step - 0.6}, load, cores=2.0, error=0.01)


def test_runs_alternate_in_a_way_that_drift_cancels():
    machine = _Machine()
    finding = Gate(SequentialPlan(), _A, _B, machine).decide()
    assert "".join(machine.order) == "bccb" * 2
    assert finding.decision == "pass"


def test_a_slower_candidate_is_a_regression_and_the_phase_that_grew_is_first():
    gate = Gate(SequentialPlan(), _A, _B, _Machine(1.2))
    assert gate.decide().decision == "regression"
    assert gate.phases()[0].name == "data_wait"
    assert gate.phases()[0].candidate_s == pytest.approx(0.6, abs=0.02)


def test_a_pair_of_uneven_load_is_set_aside_and_run_again():
    seen = []
    gate = Gate(
        SequentialPlan(),
        _A,
        _B,
        _Machine(loads=[0.0, 1.0, 0.4, 0.4]),
        on_pair=lambda pair, n: seen.append((pair.counts, n)),
    )
    gate.decide()
    assert seen == [(False, 0), (True, 1), (True, 2), (True, 3), (True, 4)]


def test_a_machine_that_is_never_even_is_taken_as_it_is_in_the_end():
    plan = SequentialPlan(most=4)
    gate = Gate(plan, _A, _B, _Machine(loads=[0, 2] * 50))
    assert gate.decide().decision == "pass"
    assert [pair.counts for pair in gate.pairs] == [False] * 4 + [True] * 4


def test_a_noisy_machine_is_given_more_pairs_and_no_more_than_there_are():
    gate = Gate(SequentialPlan(), _A, _B, _Machine(1.1, noise=0.09))
    assert gate.decide().decision == "regression"
    assert len(gate.pairs) in (32, 64, 128) and not gate.out_of_time
    gate = Gate(SequentialPlan(most=10), _A, _B, _Machine(1.04, noise=0.5))
    assert gate.decide().decision == "cannot tell" and len(gate.pairs) == 10


def test_no_time_no_answer():
    machine = _Machine()
    gate = Gate(SequentialPlan(), _A, _B, machine, budget_s=0.0)
    assert gate.decide().decision == "cannot tell" and gate.out_of_time
    assert len(machine.order) <= 2


def test_a_recorded_baseline_is_not_run():
    machine = _Machine(1.3)
    gate = Gate(SequentialPlan(recorded=True), RecordedBaseline(1.0, {"forward": 0.6}), _B, machine)
    assert gate.decide().decision == "regression"
    assert set(machine.order) == {"c"}
    assert {phase.name: phase.baseline_s for phase in gate.phases()} == {"forward": 0.6, "data_wait": 0.0}


@pytest.mark.parametrize("phi", [0.0, 0.8])
def test_the_error_of_a_mean_of_steps_that_are_alike(phi):
    generator = np.random.default_rng(0)
    means, errors = [], []
    for _ in range(300):
        shocks = generator.standard_normal(200)
        series = np.convolve(shocks, phi ** np.arange(60))[60:190] * 0.1 * math.sqrt(1 - phi**2) + 1
        means.append(series.mean())
        errors.append(relative_error(series))
    assert np.median(errors) == pytest.approx(np.std(means), rel=0.25)


@pytest.mark.parametrize("error, steps", [(0.0, 50), (0.025, 50), (0.05, 200), (10.0, 2000)])
def test_noisy_steps_ask_for_more_of_them(error, steps):
    assert steps_for(ArmRun(1.0, 50, {}, 0.0, cores=2.0, error=error)) == steps


def test_steps_that_never_vary_have_no_error():
    assert relative_error(np.ones(50)) == 0


def _result(decision="regression", **more):
    pair = GatePair(baseline_s=0.1, candidate_s=0.12, baseline_other_cores=0.0, candidate_other_cores=0.0, counts=True)
    values = {
        "decision": decision,
        "allowance": 0.05,
        "slowdown": Slowdown(1.2, 1.1, 1.25),
        "baseline": "main (c0ffee00)",
        "candidate": "<script>alert(1)</script>\x1b[31m",
        "command": ["train.py", "a|b"],
        "pairs": [pair],
        "phases": [PhaseMedians("data_wait", 0.05, 0.07), PhaseMedians("comm", 0.0, 0.0)],
        "duration_s": 100.0,
        **more,
    }
    return GateResult(**values)


def test_what_the_sides_are_set_to_is_compared():
    step = StepTime(1.0, 1.0, 1.0)

    def measured(arm, number):
        model = ModelMeasurement(batch_size=128 if arm is _B else 2048, forwards=1.0)
        measurement = Measurement("optimizer", 50, 1, 51, step, [], 2.0, 1, model=model)
        return ArmRun(1.0, 50, {}, 0.0, cores=2.0, error=0.01, measurement=measurement)

    gate = Gate(SequentialPlan(), _A, _B, measured)
    gate.decide()
    result = _result(differences=gate.settings())
    assert "samples a step: 2048 → 128" in gate_view.markdown(result)


@pytest.mark.parametrize("decision", EXIT_CODES)
def test_the_answer_is_said_and_nothing_of_the_program_gets_through(decision):
    console = Console(width=80, record=True, file=open("/dev/null", "w"))
    gate_view.page(_result(decision), console.width).show(console)
    text = console.export_text()
    assert "+20 %" in text and "data_wait" in text and "\x1b" not in text
    written = gate_view.markdown(_result(decision))
    assert "<script>" not in written and "a\\|b" in written


def test_an_interval_that_tells_nothing_is_not_shown():
    assert "(too noisy for an interval)" in gate_view.headline(
        _result("cannot tell", slowdown=Slowdown(0.6, 0.001, 90))
    )


def test_an_answer_without_pairs_is_said():
    assert (
        gate_view.headline(_result("cannot tell", slowdown=None, pairs=[], notes=["no time"])) == "cannot tell: no time"
    )


def test_a_gate_that_could_not_be_held_is_told_to_the_pull_request():
    told = gate_view.failure_markdown("the candidate ended with exit code 1\n  | Traceback <b>\n  | @everyone")
    assert "cannot tell: the candidate ended with exit code 1" in told
    assert "&lt;b&gt;" in told and "@everyone" not in told


@pytest.mark.parametrize(
    "plan, said", [(SequentialPlan(), "--pairs"), (SequentialPlan(recorded=True), "a git revision")]
)
def test_what_would_tell_more_is_said(plan, said):
    gate = Gate(plan, _A, _B, _Machine())
    (note,) = notes_of(gate, SequentialResult("cannot tell", Ratio(1.05, 0.9, 1.2, 32)))
    assert said in note
    gate.out_of_time = True
    assert "--budget" in notes_of(gate, SequentialResult("cannot tell", None))[0]
    assert notes_of(gate, SequentialResult("pass", Ratio(1.0, 0.9, 1.02, 4))) == []


def test_exit_codes_are_those_of_the_contract():
    assert EXIT_CODES == {"pass": 0, "regression": 1, "cannot tell": 2}
