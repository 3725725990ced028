"""A gradient that costs far more than what it is of: which line, how much of the step, what to do."""

from __future__ import annotations

import pytest
from factory import BACKWARD, features, lib, stack

from unstall.diagnose.gradients import costly_gradient
from unstall.diagnose.health import objections
from unstall.records.model import ModuleMeasurement, OperatorLine
from unstall.records.observations import Frame

LOOP, TABLE = Frame("forward", "/program/net.py", 12), Frame("forward", "/program/net.py", 7)


def host(operators, modules=(), samples=(), **phases):
    phases = {"forward": 0.02, "backward": 0.08, **phases}
    return features(phases, operators=operators, modules=modules, samples=list(samples))


def test_the_dearest_line_with_all_paths_to_it():
    driver = Frame("main", "/program/train.py", 3)
    operators = [
        OperatorLine((driver, LOOP), 0.5, 3.0, "SliceBackward0"),
        OperatorLine((LOOP,), 0.1, 3.0, "AddBackward0"),
        OperatorLine((TABLE,), 2.0, 4.0, "AddmmBackward0"),
    ]
    found = costly_gradient(host(operators))
    assert (found.frame, found.node, found.share) == (LOOP, "SliceBackward0", pytest.approx(0.8 * 0.6))
    assert found.sentence == (
        "the gradient of one line takes 48 % of a step, 10× what its operators take in forward: SliceBackward0"
    )
    assert "unbind" in found.advice
    assert found.sentence in objections(host(operators))


def test_what_hooks_take_is_no_gradient():
    hooked = host([OperatorLine((TABLE,), 0.1, 5.0, "EmbeddingBackward0")])
    assert costly_gradient(hooked).share == pytest.approx(0.8)
    hooked.blame.called_share = 0.5
    assert costly_gradient(hooked).share == pytest.approx(0.4)
    hooked.blame.called_share = 0.9
    assert costly_gradient(hooked) is None


def test_what_a_checkpoint_computes_again_is_no_gradient():
    part = OperatorLine((LOOP,), 0.1, 4.0, "CheckpointFunctionBackward")
    assert costly_gradient(host([part])) is None
    hook = lib("torch/utils/checkpoint.py", "unpack_hook")
    samples = [stack(BACKWARD, hook, LOOP, count=50), stack(BACKWARD, count=50)]
    beside = host([OperatorLine((TABLE,), 0.1, 5.0, "EmbeddingBackward0")], samples=samples)
    assert costly_gradient(beside).share == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("node", "word"), [("EmbeddingBackward0", "sparse=True"), ("IndexBackward0", "index_select"), ("Mine", "detach")]
)
def test_the_advice_is_of_the_operator(node, word):
    assert word in costly_gradient(host([OperatorLine((TABLE,), 0.1, 5.0, node)])).advice


@pytest.mark.parametrize(("layer", "advice"), [("GRU", "square of the length"), ("Linear", "unbind")])
def test_nobody_can_take_the_steps_of_torchs_own_recurrent_layer_at_once(layer, advice):
    operators = [OperatorLine((LOOP,), 0.5, 5.0, "SliceBackward0")]
    assert advice in costly_gradient(host(operators, modules=[of_type(layer)])).advice


@pytest.mark.parametrize(("layer", "ratio"), [("GRU", 9), ("Linear", None)])
def test_the_phases_tell_the_ratio_where_timers_slow_the_many_small_operators_of_a_layer(layer, ratio):
    operators = [OperatorLine((LOOP,), 1.0, 4.5, "SliceBackward0")]
    found = costly_gradient(host(operators, modules=[of_type(layer)], forward=0.01, backward=0.09))
    assert (found and found.ratio) == (ratio and pytest.approx(ratio))


def of_type(layer):
    return ModuleMeasurement("layer", layer, "rnn.py", 1, 1.0, 0.02, 0.02, 0)


@pytest.mark.parametrize(
    "operators",
    [
        [],
        [OperatorLine((TABLE,), 2.0, 5.0, "ConvolutionBackward0")],  # twice to four times is usual
        [OperatorLine((TABLE,), 0.1, 1.0, "SelectBackward0"), OperatorLine((), 0.0, 9.0, "AccumulateGrad")],  # little
        [OperatorLine((TABLE,), 0.0, 0.0)],
    ],
)
def test_what_is_not_dear(operators):
    assert costly_gradient(host(operators)) is None
