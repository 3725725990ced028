"""What is gauged of a function before its trials, from what its process tells."""

from types import SimpleNamespace

import numpy as np
import pytest

from unstall.simplify import gauge
from unstall.simplify.blocks import Pace
from unstall.simplify.interventions.base import key_of
from unstall.simplify.segment import Segment
from unstall.simplify.trial import Trial

PACE = Pace(step_s=0.1, steps=4, seconds=0.5, settle_steps=1, settle_s=0.0, cores=2)
DECODE = {"name": "Photos.decode", "file": "train.py"}


class Lab:
    """A laboratory whose program told these facts; keeps the conditions it was switched to. Ten steps of 0.1 s."""

    def __init__(self, **told):
        self.session = SimpleNamespace(main=SimpleNamespace(pid=7))
        self.told, self.switched = told, []

    def switch(self, interventions):
        self.switched += interventions or ["nothing"]

    def settle(self, steps, seconds, step_s):
        pass

    def run(self, steps, seconds, step_s):
        none = np.zeros(10, bool)
        return Segment(np.full(10, 0.1), none, {"forward": 0.02, "data_wait": 0.08}, {}, began=5.0, ended=6.0)

    def facts(self, kind):
        keys = {one["kind"]: key_of(one) for one in self.switched if one != "nothing"}
        told = [{"key": keys.get(kind), "process": 7, **one} for one in self.told.get(kind, [])]
        return [*told, {"key": "of another", "process": 7, "bins": [[5.5, 9.0, 9]], "overhead": 9.0}]


def timed(*bins, overhead=1e-6, backward=(), **more):
    gradients = {"backward": [list(one) for one in backward], "zeros": 0.06, "answer": 2e-6}
    return [{"bins": [list(one) for one in bins], "overhead": overhead, **gradients, **more}]


def test_a_function_is_timed_and_then_its_cooling_read():
    lab = Lab(timed=timed((5.2, 0.4, 20), (5.8, 0.4, 20)), cooling=[{"by_call": 0.2, "by_step": 0.6}])
    found = gauge.gauge(lab, DECODE, PACE, 2 << 20)
    assert (found.share, found.calls) == (pytest.approx(0.8), 4.0)
    assert (found.emptied, found.emptied_by_call) == (0.6, 0.2), "of four calls a step"
    assert found.phases["data_wait"] == 0.08 and found.overhead_s == pytest.approx(4e-6)
    assert found.answer_s == 2e-6
    timing, off, cooling, end = lab.switched  # of 40 calls one look is enough
    assert timing == {"kind": "timed", **DECODE} and off == end == "nothing"
    assert cooling["step_s"] == pytest.approx(0.08) and 1 << 20 < cooling["bytes"] < 2 << 20


def test_only_calls_within_the_steps_that_were_measured_count():
    lab = Lab(timed=timed((4.9, 0.3, 20), (5.0, 0.1, 10), (5.9, 0.1, 10), (6.0, 0.3, 20)))
    found = gauge.gauge(lab, DECODE, PACE, 0)
    assert (found.share, found.calls) == (pytest.approx(0.2), 2.0)


@pytest.mark.parametrize("told", [[], timed(), timed((4.0, 0.1, 3))])
def test_a_function_that_the_main_thread_does_not_call_is_left_to_the_samples(told):
    lab = Lab(timed=told)
    assert gauge.gauge(lab, DECODE, PACE, 0) is None
    assert len(lab.switched) == 2


def test_what_backward_spends_inside_is_told_by_the_step():
    inside = [(4.9, 0.5), (5.1, 0.05), (5.6, 0.05)]
    lab = Lab(timed=timed((5.2, 0.4, 20), backward=inside))
    backward = gauge.gauge(lab, DECODE, PACE, 0).backward
    assert (backward.seconds, backward.entries) == (pytest.approx(0.01), 0.2)
    assert backward.zeros_s == pytest.approx(0.004), "two of three times"


def test_a_loader_worker_tells_nothing_of_the_main_thread():
    assert gauge.gauge(Lab(timed=timed((5.5, 0.8, 40), process=8)), DECODE, PACE, 0) is None


@pytest.mark.parametrize(("cooled", "emptied"), [([], 0.0), ([{"by_call": 0.5, "by_step": None}], 0.75)])
def test_a_step_that_was_not_read_is_put_together_from_calls(cooled, emptied):
    lab = Lab(timed=timed((5.5, 0.8, 20)), cooling=cooled)
    assert gauge.gauge(lab, DECODE, PACE, 0).emptied == pytest.approx(emptied)


def test_a_function_of_few_steps_is_watched_longer_and_cools_only_those():
    lab = Lab(timed=timed((5.5, 0.4, 2)), cooling=[{"by_call": 0.9, "by_step": 0.9}])
    found = gauge.gauge(lab, DECODE, PACE, 0)
    assert [one["kind"] for one in lab.switched if one != "nothing"] == ["timed", "timed", "cooling"]
    assert (found.calls, found.emptied_by_call) == (pytest.approx(0.2), 0.9)
    assert found.emptied == pytest.approx(0.18)


def test_work_that_seams_record_needs_no_timing():
    stub, later = {"kind": "stub", **DECODE}, {"kind": "optimizer", "name": "optimizer"}
    assert gauge.functions_of(Trial("without both", "stub", (later,), base=(stub,))) == [DECODE]
    assert gauge.functions_of(Trial("cached batches", "cached", ({"kind": "cached"},))) == []
