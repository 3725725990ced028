"""Subnormal numbers taken for zeros: where it is proposed, and where it is written."""

from __future__ import annotations

import pytest
from factory import measurement
from optimize_builders import make_context, make_finding, make_report

from unstall.diagnose.patterns.slows_down import SUBNORMALS
from unstall.optimize.remedies import flush_subnormals
from unstall.optimize.source.errors import NotApplicable
from unstall.records.measurements import MemoryMeasurement

MEASURED = measurement({"optimizer": 0.01}, memory=MemoryMeasurement(subnormal=0.05))


def slowing_report(cause=SUBNORMALS):
    return make_report(findings=[make_finding("slows-down", cause=cause, share=0.6)])


def test_it_stands_after_the_imports_of_the_script(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import torch as t\nfrom model import Model\n\nmodel = Model()\n")
    context = make_context(tmp_path, script=script, report=slowing_report(), measurement=MEASURED)
    [proposal] = flush_subnormals.REMEDY.propose(context)
    assert proposal.predicted == pytest.approx(1 / (1 - 0.9 * 0.6))
    source = proposal.sources.bytes_of(script).decode()
    assert source == "import torch as t\nfrom model import Model\n\nt.set_flush_denormal(True)\n\nmodel = Model()\n"


def test_a_script_without_torch_has_it_at_run_time(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import training\n")
    context = make_context(tmp_path, script=script, report=slowing_report(), measurement=MEASURED)
    [proposal] = flush_subnormals.REMEDY.propose(context)
    assert proposal.sources is None and proposal.settings == {"flush_subnormals": True}


def test_a_step_that_grows_by_something_else_is_left_as_it_is(tmp_path):
    with pytest.raises(NotApplicable, match="no step takes longer by subnormal"):
        flush_subnormals.REMEDY.propose(make_context(tmp_path, report=slowing_report("history"), measurement=MEASURED))


def test_equal_results_of_a_few_steps_are_not_called_exact():
    assert flush_subnormals.REMEDY.never_exact and flush_subnormals.REMEDY.exactness == "close"
