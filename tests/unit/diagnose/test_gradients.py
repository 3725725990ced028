"""A gradient that costs far more than what it is of: which line, how much of the step, what to do."""

from __future__ import annotations

import pytest
from factory import features

from unstall.diagnose.gradients import costly_gradient
from unstall.diagnose.health import objections
from unstall.records.model import ModuleMeasurement, OperatorLine
from unstall.records.observations import Frame

LOOP, TABLE = Frame("forward", "/program/net.py", 12), Frame("forward", "/program/net.py", 7)


def host(operators, **phases):
    return features({"forward": 0.02, "backward": 0.08, **phases}, operators=operators)


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
        "the gradient of one line takes 48 % of a step, 10.4× what its operators take in forward: SliceBackward0"
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


@pytest.mark.parametrize(
    ("node", "word"), [("EmbeddingBackward0", "sparse=True"), ("IndexBackward0", "index_select"), ("Mine", "detach")]
)
def test_the_advice_is_of_the_operator(node, word):
    assert word in costly_gradient(host([OperatorLine((TABLE,), 0.1, 5.0, node)])).advice


def test_the_phases_tell_the_ratio_where_timers_have_slowed_the_small_operators_of_forward():
    operators = [OperatorLine((LOOP,), 1.0, 4.5, "SliceBackward0")]
    assert costly_gradient(host(operators)) is None
    found = costly_gradient(host(operators, forward=0.01, backward=0.09))
    assert (found.share, found.ratio) == (pytest.approx(0.9), pytest.approx(9))


@pytest.mark.parametrize(("layer", "advice"), [("GRU", "square of the length"), ("Linear", "unbind")])
def test_nobody_can_take_the_steps_of_torchs_own_recurrent_layer_at_once(layer, advice):
    modules = [ModuleMeasurement("gru", layer, "rnn.py", 1, 1.0, 0.02, 0.02, 0)]
    operators = [OperatorLine((LOOP,), 0.5, 5.0, "SliceBackward0")]
    found = costly_gradient(features({"forward": 0.02, "backward": 0.08}, operators=operators, modules=modules))
    assert advice in found.advice


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
