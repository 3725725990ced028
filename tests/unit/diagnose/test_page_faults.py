"""Which share of a step goes into pages that the kernel gives."""

from __future__ import annotations

import msgspec
import pytest
from factory import measurement
from hypothesis import given
from hypothesis import strategies as st
from patterncase import host_findings, match, module

from unstall.diagnose import page_faults
from unstall.records.model import ModelMeasurement

SECONDS = st.floats(0, 10)


@given(SECONDS, st.floats(0, 1e7), SECONDS)
def test_it_is_a_share_of_no_more_than_the_kernel_takes(kernel_s, pages, other_s):
    measured = measurement({"forward": 0.1}, main_kernel_s=kernel_s, page_faults=pages, main_cpu_s=kernel_s + other_s)
    share = page_faults.share(measured)
    assert 0 <= share <= 1
    assert share <= kernel_s / measured.step.mean + 1e-12


def test_a_kernel_that_does_other_things_gives_no_pages():
    assert page_faults.share(measurement({"forward": 0.1}, main_kernel_s=0.09, main_cpu_s=0.1)) == 0


GOOD = ModelMeasurement(threads=4, dtype="torch.float32", flops=6e9, peak_flops=1e11, flops_coverage=1.0)
PHASES = {"forward": 0.05, "backward": 0.05}
FAULTING = {"main_cpu_s": 0.1, "main_kernel_s": 0.04, "page_faults": 30_000.0}


def test_a_run_in_which_page_faults_take_much_is_not_called_healthy():
    assert match("healthy", PHASES, model=GOOD) is not None and match("unexplained", PHASES, model=GOOD) is None
    assert match("healthy", PHASES, model=GOOD, **FAULTING) is None
    finding = match("unexplained", PHASES, model=GOOD, **FAULTING)
    assert any("30,000 pages" in line for line in finding.evidence)
    assert finding.advice[0] == page_faults.ADVICE


def test_a_model_that_does_nothing_else_wrong_is_bound_by_page_faults():
    assert [finding.pattern for finding in host_findings(measurement(PHASES, model=GOOD))][:1] == ["healthy"]
    verdict, *_ = host_findings(measurement(PHASES, model=GOOD, **FAULTING))
    assert (verdict.pattern, verdict.cause, verdict.culprit) == ("compute-bound", "page-faults", None)
    assert sum("30,000 pages" in line for line in verdict.evidence) == 1
    assert verdict.advice == [page_faults.ADVICE]
    assert verdict.next_step is None
    assert verdict.headroom == pytest.approx(1 / 0.6, rel=0.01)
    assert 1.1 < verdict.expected_gain.value < verdict.headroom


def test_it_leads_though_it_gains_little_as_one_line_cures_it():
    verdict, *_ = host_findings(measurement(PHASES, model=GOOD, **{**FAULTING, "main_kernel_s": 0.011}))
    assert (verdict.pattern, verdict.cause) == ("compute-bound", "page-faults")


def test_what_is_worse_about_the_model_is_blamed_first():
    double = msgspec.structs.replace(GOOD, dtype="torch.float64")
    verdict, *_ = host_findings(measurement(PHASES, model=double, **FAULTING))
    assert (verdict.pattern, verdict.cause) == ("compute-bound", "precision")
    assert page_faults.ADVICE in verdict.advice


def test_a_rate_that_is_poor_for_its_page_faults_alone_is_no_layers_fault():
    slow = msgspec.structs.replace(GOOD, flops=1.6e9)  # 16 % of the peak; 27 % of it in the time that is left
    assert [cause_of(slow, faulting) for faulting in ({}, FAULTING)] == ["model", "page-faults"]


def test_page_faults_that_are_worth_a_line_come_before_a_rate_that_is_poor_without_them_too():
    slow = msgspec.structs.replace(GOOD, flops=2e8)
    few = {**FAULTING, "main_kernel_s": 0.012}
    assert [cause_of(slow, faulting) for faulting in (FAULTING, few)] == ["page-faults", "model"]


@pytest.mark.parametrize(("share", "cause"), [(0.95, "model"), (0.7, "page-faults")])
def test_a_layer_out_of_proportion_comes_first_where_it_takes_twice_as_much(share, cause):
    rest = [module(f"part{n}", "Norm", (1 - share) / 9) for n in range(9)]
    assert (
        cause_of(GOOD, {**FAULTING, "modules": [module("packed", "Packed", share, file="/program/q.py"), *rest]})
        == cause
    )


def cause_of(model, facts):
    """The cause that leads."""
    return host_findings(measurement(PHASES, model=model, **facts))[0].cause
