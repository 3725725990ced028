"""Phases and seams of plug-ins in a recording: how their spans are read, counted and kept."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import numpy as np
import pytest
from spanfactory import Recording, check_loop, loop_of, mean, train_step

from unstall.benchmark.measure import measure
from unstall.benchmark.session import Observation
from unstall.child import plugins
from unstall.records.vocabulary import PHASE_NAMES, Phase, Seam, Tick

TOKENIZE = Phase("tokenize", "turning text into numbers")
RENDER = Phase("render", "drawing", serves=True)


def test_a_plugins_phase_is_told_from_the_others_after_the_built_in_ones():
    r = Recording()
    r.plug_in(TOKENIZE, Seam("~tokens.*", "tokenize"))
    for _ in range(6):
        with r.span("~tokens.encode"):
            r.spend(0.010)
            r.do("~gc", 0.002)
        train_step(r)
    loop = loop_of(r)
    check_loop(loop)
    assert loop.phase_names == (*PHASE_NAMES, "tokenize")
    assert mean(loop, "tokenize", slice(0, 5)) == pytest.approx(0.012)
    assert mean(loop, "forward") == pytest.approx(0.020)


def test_without_the_plugin_the_same_names_are_a_users_own():
    r = Recording()
    for _ in range(6):
        r.do("~tokens.encode", 0.010)
        train_step(r)
    loop = loop_of(r)
    assert loop.phase_names == PHASE_NAMES
    assert mean(loop, "other", slice(0, 5)) == pytest.approx(0.010)


def test_a_module_inside_what_serves_is_part_of_it():
    r = Recording()
    r.plug_in(RENDER, Seam("~render", "render"))
    for _ in range(6):
        with r.span("~render"):
            r.do("~forward", 0.030, arg=5)
        train_step(r)
    loop = loop_of(r)
    assert mean(loop, "render", slice(0, 5)) == pytest.approx(0.030)
    assert mean(loop, "forward", slice(0, 5)) == pytest.approx(0.020)


@pytest.mark.parametrize(
    "counts, kind",
    [(Tick.ENV, "env"), (Tick.EXPLICIT, "explicit"), (Tick.OPTIMIZER, "optimizer"), (Tick.FORWARD, "forward")],
)
def test_a_plugins_seam_counts_the_steps_as_the_kind_it_says(counts, kind):
    r = Recording()
    r.plug_in(Seam("~mine", "env", counts))
    for _ in range(8):
        r.do("~mine", 0.010)
        r.spend(0.005)
    loop = loop_of(r)
    check_loop(loop)
    assert loop.kind == kind
    assert np.median(loop.durations) == pytest.approx(0.015)


def test_a_thread_of_a_plugins_seam_may_drive_the_loop():
    r = Recording(flags=0, thread=101)
    r.plug_in(Seam("~mine", "env", Tick.ENV))
    for _ in range(8):
        r.do("~mine", 0.010)
    assert loop_of(r).kind == "env"


def test_what_plugins_added_is_kept_with_the_measurement():
    r = Recording()
    tokens = Seam("~tokens.encode", "tokenize", Tick.OTHER, stub="tokens", frames=(("toytokens", "encode"),))
    r.plug_in(TOKENIZE, tokens)
    for _ in range(30):
        r.do("~tokens.encode", 0.010)
        train_step(r)
    measurement = measure([r.process()], Observation(began=999.0, ended=r.t)).measurement
    assert measurement.plugins == ((TOKENIZE,), (tokens,))
    assert measurement.phase("tokenize").mean_s == pytest.approx(0.010, rel=0.05)


def test_the_entry_points_are_handed_on_by_name_and_not_imported(monkeypatch):
    entries = [
        EntryPoint("b", "no.such.module:PHASE [extra]", "unstall.phases"),
        EntryPoint("z", "no.such:a", "unstall.seams"),
        EntryPoint("a", "nor.this", "unstall.seams"),
        EntryPoint("c", "of.others:anything", "console_scripts"),
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda: EntryPoints(entries))
    assert plugins.declared.__wrapped__() == {
        "unstall.phases": [("b", "no.such.module:PHASE")],
        "unstall.seams": [("a", "nor.this"), ("z", "no.such:a")],
    }
