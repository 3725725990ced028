"""What is left of a study's budget makes the ceilings better known, the vaguest first."""

from __future__ import annotations

import time

import numpy as np
import pytest

from unstall.simplify import study
from unstall.simplify.blocks import Pace
from unstall.simplify.study import Study
from unstall.simplify.trial import Outcome, Trial

PACE = Pace(step_s=0.1, steps=4, seconds=0.5, settle_steps=1, settle_s=0.0, cores=2)


def outcome(effect, *, noise, blocks=5, component="decode", intervention="stub", settings=None):
    made = Outcome(Trial(f"without {component}", intervention, (), component=component, settings=settings))
    made.log_ratios = list(np.random.default_rng(1).normal(np.log(effect), noise, blocks))
    return made


def sharpened(monkeypatch, outcomes, *, seconds=60.0, noise=0.05, yields=True):
    """The names of what was tried again, in order."""
    one = Study.__new__(Study)
    one.deadline, one.tell = time.monotonic() + seconds, lambda line: None
    generator, tried = np.random.default_rng(2), []

    def more(self, outcome, measurement, pace, seconds, enough):
        tried.append(outcome.trial.component)
        while yields and not enough.of(outcome):
            outcome.log_ratios.append(generator.normal(np.mean(outcome.log_ratios), noise))

    monkeypatch.setattr(study.Study, "_try", more)
    one._sharpen(outcomes, None, PACE)
    return tried


def test_the_vaguest_ceiling_comes_first_until_all_are_known_well(monkeypatch):
    vague, vaguer = outcome(4, noise=0.15, component="a"), outcome(4, noise=0.4, component="b")
    tried = sharpened(monkeypatch, [vague, vaguer])
    assert tried[0] == "b" and set(tried) == {"a", "b"}
    for one in (vague, vaguer):
        assert one.is_tight(0.05) or one.blocks >= 24


def test_no_ceiling_takes_more_than_its_blocks(monkeypatch):
    hopeless = outcome(4, noise=2.0)
    sharpened(monkeypatch, [hopeless], noise=2.0)
    assert 24 <= hopeless.blocks < 28


@pytest.mark.parametrize(
    "known",
    [
        outcome(4, noise=0.001),
        outcome(1.0, noise=0.3),
        outcome(4, noise=0.3, component=None),
        outcome(4, noise=0.3, intervention="delay"),
        outcome(4, noise=0.3, settings={"loader": {"num_workers": 2}}),
        Outcome(Trial("without it", "stub", (), component="decode"), failure="it returns a generator"),
    ],
)
def test_what_is_known_well_or_is_no_ceiling_is_left(monkeypatch, known):
    assert sharpened(monkeypatch, [known]) == []


def test_it_ends_with_the_budget_and_where_no_more_blocks_can_be_had(monkeypatch):
    assert sharpened(monkeypatch, [outcome(4, noise=0.3)], seconds=1.0) == []
    assert sharpened(monkeypatch, [outcome(4, noise=0.3)], yields=False) == ["decode"]
