"""What the recorded run alone says of an experiment: the same as `unstall what-if` asked the same question."""

import numpy as np
import pytest

from unstall import model
from unstall.benchmark import thresholds
from unstall.model.function_shares import FunctionShares
from unstall.model.pipeline_model import Pipeline
from unstall.model.work import Layout
from unstall.simplify import plan, registry
from unstall.simplify.experiment import Experiment
from unstall.simplify.predictor import pipeline_of, speedup

LOG, NET = ("train", "log"), ("train", "Net", "forward")
BODY = {"forward": 0.02, "backward": 0.04, "optimizer": 0.01, "callback": 0.12, "other": 0.01}


@pytest.fixture
def pipeline():
    """A step of 0.2 s, of which ``log`` takes 0.096."""
    stacks = {
        "callback": ((frozenset({LOG}), 80), (frozenset(), 20)),
        "forward": ((frozenset({NET}), 90), (frozenset(), 10)),
    }
    return Pipeline(
        layout=Layout(cores=64.0),
        phases=tuple(BODY),
        compute=np.tile(list(BODY.values()), (50, 1)),
        wait=np.zeros((50, len(BODY))),
        function_shares=FunctionShares(stacks, own=frozenset({LOG, NET})),
        measured_s=0.2,
    )


def without(name):
    return plan.stub(plan.ReplaceableFunction(name, None))


def free(name):
    return plan.free(registry.components()[name])


@pytest.mark.parametrize(
    ("experiment", "question"),
    [
        (without("log"), "log=free"),
        (free("backward"), "backward=free"),
        (plan.delay("log", None, 0.5), "log=+50%"),
        (plan.delay("optimizer", None, 0.5), "optimizer=+50%"),
    ],
)
def test_it_is_what_what_if_says(pipeline, experiment, question):
    said = model.predict(pipeline, model.parse([question]))
    found = speedup(pipeline, experiment)
    assert found.value == pytest.approx(said.speedup)
    assert (found.low, found.high) == pytest.approx((said.speedup_low, said.speedup_high))


def test_a_function_is_its_share_of_the_samples(pipeline):
    left_s = 0.2 - 0.096 - thresholds.MOST_WARMED_S
    assert speedup(pipeline, without("log")).value == pytest.approx(0.2 / left_s, rel=0.01)


def test_a_second_part_is_predicted_without_the_first(pipeline):
    second = plan.interaction(without("log"), free("backward"))
    assert speedup(pipeline, second).value == pytest.approx(0.104 / 0.064, rel=0.01)


@pytest.mark.parametrize(
    "experiment",
    [
        without("no_such_function"),
        without("Net.forward"),
        free("callbacks"),
        free("network"),
        plan.setting("ranks", 1),
        plan.setting("workers", 2),
        Experiment("placebos", "placebo", placebo=True),
    ],
)
def test_what_the_model_has_no_word_for_is_not_predicted(pipeline, experiment):
    assert speedup(pipeline, experiment) is None


def test_without_a_model_of_the_run_nothing_is_predicted():
    assert speedup(pipeline_of(None), without("log")) is None
