"""Steps of compiled functions: their calls count the steps, and compiling is a phase of its own."""

import pytest
from tests.support.spanfactory import Recording

from unstall.benchmark.steps import compilations, find_loop, main_spans


def mark(recording, name, seconds):
    with recording.span(name, arg=round(seconds * 1e9)):
        pass


def recompiling(steps=6):
    recording = Recording()
    for _ in range(steps):
        recording.spend(0.2)
        with recording.span("~jit.train_step"):
            recording.spend(0.5)
            mark(recording, "~trace.inner", 0.1)
            mark(recording, "~trace.train_step", 0.3)
            recording.spend(0.4)
            mark(recording, "~compile.train_step", 0.4)
            recording.spend(0.05)
    return recording.process()


def test_compiling_is_no_part_of_the_call_that_it_happens_in():
    loop = find_loop(recompiling())
    by_name = dict(zip(loop.phase_names, loop.phases.mean(axis=0)))
    assert loop.kind == "forward" and len(loop) == 5
    assert by_name["compile"] == pytest.approx(0.7)
    assert by_name["dispatch"] == pytest.approx(0.25)
    assert by_name["other"] == pytest.approx(0.2)


def test_what_is_traced_inside_another_tracing_counts_once():
    process = recompiling(steps=2)
    marks, took = compilations(process, main_spans(process))
    by_name = {}
    for number, seconds in zip(marks["name"], took):
        by_name[process.names[number]] = by_name.get(process.names[number], 0) + seconds
    assert by_name == pytest.approx({"~trace.inner": 0.0, "~trace.train_step": 0.6, "~compile.train_step": 0.8})
