"""Which share of a step goes into pages that the kernel gives."""

from __future__ import annotations

from factory import measurement
from hypothesis import given
from hypothesis import strategies as st
from patterncase import match

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


def test_a_run_in_which_page_faults_take_much_is_not_called_healthy():
    model = ModelMeasurement(threads=4, dtype="torch.float32", flops=6e9, peak_flops=1e11, flops_coverage=1.0)
    phases = {"forward": 0.05, "backward": 0.05}
    faulting = {"main_cpu_s": 0.1, "main_kernel_s": 0.04, "page_faults": 30_000.0}
    assert match("healthy", phases, model=model) is not None and match("unexplained", phases, model=model) is None
    assert match("healthy", phases, model=model, **faulting) is None
    finding = match("unexplained", phases, model=model, **faulting)
    assert any("30,000 pages" in line for line in finding.evidence)
    assert finding.advice[0] == page_faults.ADVICE
