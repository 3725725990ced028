"""Compile-bound: what is compiled again and again."""

from __future__ import annotations

import pytest
from factory import (
    CALL,
    measurement,
    stack,
)
from patterncase import TRAINING, check, host_findings, match, training_sites

from unstall.records.compiled import CompiledFrame, GraphBreak
from unstall.records.measurements import CompiledFunction
from unstall.records.model import ModelMeasurement
from unstall.records.observations import Frame


def test_compile_bound_names_the_line_that_calls_what_is_compiled_again(code):
    phases = {"compile": 0.08, "dispatch": 0.01, "other": 0.01}
    compiled = [CompiledFunction("augment", 1, 0.01), CompiledFunction("train_step", 20, 0.07)]
    sites = [code.site("~jit.augment", "main", "# ask"), code.site("~jit.train_step", "main", "# model")]
    finding = check(match("compile-bound", phases, compiled=compiled, sites=sites), "compile-bound", headroom=3)
    assert (finding.culprit.function, finding.culprit.line) == ("main", sites[1].line)
    assert "train_step was compiled 20 times in the measured steps, 70 ms a step" in finding.evidence


def test_compile_bound_names_the_line_that_calls_a_compiled_model(code):
    phases = {"compile": 0.08, "forward": 0.02}
    compiled = [CompiledFunction("a graph of torch.compile", 40, 0.08)]
    finding = check(match("compile-bound", phases, compiled=compiled, sites=training_sites(code)), "compile-bound")
    assert finding.culprit.line == code.line("# model")


GENERATED = Frame("Runner.call", "/tmp/torchinductor_me/ab/cab" + "x" * 49 + ".py", 40)


ITEM = GraphBreak(line=12, reason="Unsupported Tensor.item() call")


def frame_of(code, **more):
    values = {"function": "suppress", "file": code.file, "line": code.line("# suppress"), "compilations": 8}
    return CompiledFrame(**{**values, **more})


def compiled_case(code, frame, *, inside, outside):
    """A model of which so many samples are in generated code, and so many in the program's function."""
    calling = (code.at("main", "# call suppress"), CALL, code.at("suppress", "# suppress"))
    samples = [stack(*calling, GENERATED, count=inside), stack(*calling, count=outside)]
    return match("compile-bound", samples=[s for s in samples if s.count], compiled_frames=[frame])


def test_a_function_that_torch_gave_up_is_named_with_the_guard_that_failed(code):
    finding = compiled_case(code, frame_of(code, given_up="self.calls == 7"), inside=0, outside=100)
    assert (finding.cause, finding.culprit.function, finding.headroom) == ("given-up", "suppress", 1.0)
    assert finding.summary == "suppress runs uncompiled: torch.compile gave it up"
    assert "torch gave suppress up after it was compiled 8 times, for self.calls == 7" in finding.evidence


def test_what_runs_uncompiled_comes_before_what_is_said_of_the_model_and_after_a_stall(code):
    calling = (code.at("main", "# call suppress"), CALL, code.at("suppress", "# suppress"))
    more = {
        "samples": [stack(*calling, count=500)],
        "compiled_frames": [frame_of(code, given_up="self.calls == 7")],
        "model": ModelMeasurement(dtype="torch.float64", threads=4),
    }
    patterns = [found.pattern for found in host_findings(measurement(TRAINING, **more))]
    assert patterns[:2] == ["compile-bound", "compute-bound"]
    stalled = host_findings(measurement({**TRAINING, "data_wait": 0.3}, **more))
    assert stalled[0].pattern == "input-bound"


def test_a_broken_graph_costs_what_is_between_its_pieces(code):
    finding = compiled_case(code, frame_of(code, breaks=[ITEM], graphs=2), inside=50, outside=50)
    assert (finding.cause, finding.culprit.line) == ("graph-break", 12)
    assert finding.share == pytest.approx(0.2475)  # of 0.99 of a step half is outside, of which one piece leaves half
    assert "its graph breaks at line 12: Unsupported Tensor.item() call" in finding.evidence


def test_a_break_that_torch_keeps_no_reason_of_is_known_by_its_code(code):
    broken = GraphBreak(line=code.line("# suppress"))
    finding = compiled_case(code, frame_of(code, breaks=[broken], graphs=2), inside=50, outside=50)
    assert any(line.endswith("# suppress") for line in finding.evidence)


def test_without_code_of_torchs_own_nothing_is_said_of_breaks(code):
    assert compiled_case(code, frame_of(code, breaks=[ITEM], graphs=2), inside=0, outside=100) is None


def test_a_function_that_is_hardly_run_is_not_blamed_for_being_given_up(code):
    assert compiled_case(code, frame_of(code, given_up="self.calls == 7"), inside=95, outside=5) is None
