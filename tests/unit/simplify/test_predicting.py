"""From a trial to what the pipeline model says of it, with what was gauged and measured before the trial."""

from types import SimpleNamespace

import numpy as np
import pytest

from unstall.model import Timed
from unstall.model.parts import Parts
from unstall.model.pipeline import Pipeline
from unstall.model.timed import Backward
from unstall.model.work import Layout
from unstall.records.vocabulary import PHASE_NAMES
from unstall.simplify import predicting
from unstall.simplify.predicting import Predictor
from unstall.simplify.trial import Trial

LOG, NET, DRAW = ("train", "log"), ("train", "Net", "forward"), ("train", "draw")
BODY = {"forward": 0.02, "backward": 0.04, "optimizer": 0.01, "callback": 0.12, "other": 0.01}
STUB_LOG = {"kind": "stub", "name": "log", "file": None}
STUB_NET = {"kind": "stub", "name": "Net.forward", "file": None}


def samples():
    return Parts(
        {
            "callback": ((frozenset({LOG}), 80), (frozenset({DRAW}), 20)),
            "forward": ((frozenset({NET}), 90), (frozenset(), 10)),
        },
        own=frozenset({LOG, NET, DRAW}),
    )


@pytest.fixture
def predictor(monkeypatch):
    """Makes a predictor of a step of 0.2 s, of which 0.12 are callbacks by the samples; ``recorded`` by their seams."""

    def made(timed=None, recorded=BODY):
        one = Pipeline(
            layout=Layout(cores=64.0),
            phases=tuple(BODY),
            compute=np.tile(list(BODY.values()), (50, 1)),
            wait=np.zeros((50, len(BODY))),
            parts=samples(),
            measured_s=0.2,
        )
        phases = [SimpleNamespace(name=name, mean_s=recorded.get(name, 0.0)) for name in PHASE_NAMES]
        measurement = SimpleNamespace(
            phases=phases, phase_s=lambda *names: sum(recorded.get(name, 0.0) for name in names)
        )
        monkeypatch.setattr(predicting, "_pipeline", lambda measured: one)
        return Predictor(SimpleNamespace(measurement=measurement), timed)

    return made


def without(*specifications, base=()):
    return Trial("without it", "stub", specifications, base=base, component="it")


def test_without_timing_a_function_is_its_share_of_the_samples(predictor):
    assert predictor().ratio(without(STUB_LOG)) == pytest.approx(0.2 / (0.2 - 0.096), rel=0.05)


def test_what_was_timed_counts_more_than_the_samples(predictor):
    timed = {"log": Timed(0.55, 1.0)}
    assert predictor(timed).ratio(without(STUB_LOG)) == pytest.approx(0.2 / 0.09, rel=0.06)


def test_many_answers_of_a_stub_take_their_time(predictor):
    def ratio(calls, **more):
        return predictor({"log": Timed(0.4, calls, **more)}).ratio(without(STUB_LOG))

    assert 0.2 / ratio(20_000.0) - 0.2 / ratio(1.0) == pytest.approx(0.01, rel=0.3)
    assert 0.2 / ratio(10.0, answer_s=1e-3) - 0.2 / ratio(10.0) == pytest.approx(0.01, rel=0.1), "large answers"


def test_it_starts_from_what_the_base_takes_now(predictor):
    slower = {**BODY, "callback": 0.5}
    now = predictor().ratio(without(STUB_LOG), slower)
    assert now == pytest.approx(0.58 / (0.58 - 0.4), rel=0.05)
    timed = Timed(0.55, 1.0, phases=BODY)  # of 0.12 seconds of callbacks it was 0.11
    now = predictor({"log": timed}).ratio(without(STUB_LOG), slower)
    assert now == pytest.approx(0.58 / (0.58 - 0.5 * 0.11 / 0.12), rel=0.06)


def test_a_second_part_is_predicted_from_the_step_without_the_first(predictor):
    left = {"forward": 0.02, "backward": 0.04, "optimizer": 0.01, "callback": 0.02, "other": 0.01}
    second = {"kind": "backward", "name": "backward"}
    ratio = predictor().ratio(without(second, base=(STUB_LOG,)), left)
    assert ratio == pytest.approx(0.1 / 0.06, rel=0.05)


def test_what_backward_spends_inside_goes_with_a_function(predictor):
    inside = Backward(seconds=0.03, entries=1.0)
    timed = {"Net.forward": Timed(0.1, 1.0, phases=BODY, backward=inside)}
    assert predictor(timed).ratio(without(STUB_NET)) == pytest.approx(0.2 / (0.2 - 0.02 - 0.03), rel=0.06)


def test_of_a_module_that_was_not_timed_as_much_of_backward_goes_as_of_forward(predictor):
    assert predictor().ratio(without(STUB_NET)) == pytest.approx(0.2 / (0.2 - 0.018 - 0.036), rel=0.06)


def test_answers_that_gradients_flow_through_take_their_time(predictor):
    def ratio(**more):
        inside = Backward(seconds=0.03, entries=1.0, **more)
        return predictor({"Net.forward": Timed(0.1, 1.0, phases=BODY, backward=inside)}).ratio(without(STUB_NET))

    assert 0.2 / ratio(zeros_s=0.006) - 0.2 / ratio() == pytest.approx(0.006, rel=0.1)


def test_what_is_no_longer_called_takes_no_answers(predictor):
    """``log`` is all of the callbacks' samples but a fifth; without it there is nothing of ``log`` to answer for."""
    timed = {"log": Timed(0.48, 1e6, phases=BODY, seconds=0.096)}
    left = {"forward": 0.02, "backward": 0.04, "optimizer": 0.01, "callback": 0.02, "other": 0.01}
    assert predictor(timed).ratio(without(STUB_LOG, base=(STUB_LOG,)), left) == pytest.approx(1.0, rel=0.02)
    assert predictor(timed).ratio(without(STUB_LOG)) < 0.4, "a million answers"


def test_known_callbacks_are_not_all_that_samples_count_among_them(predictor):
    """Samples show 0.12 s of callbacks; those that are known as such, and taken out, take 0.03."""
    recorded = {**BODY, "callback": 0.03, "other": 0.1}
    trial = without({"kind": "callbacks", "name": "callbacks"})
    assert predictor(recorded=recorded).ratio(trial) == pytest.approx(0.2 / 0.17, rel=0.05)


def test_what_the_model_has_no_word_for_is_not_predicted(predictor):
    assert predictor().ratio(without({"kind": "sleep", "name": "log"})) is None
    assert predictor().ratio(without({"kind": "stub", "name": "no_such"})) is None


def test_without_a_model_of_the_run_nothing_is_predicted():
    assert Predictor(None).ratio(without(STUB_LOG)) is None
