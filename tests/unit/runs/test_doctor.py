"""What ``unstall doctor`` keeps of its figures."""

from __future__ import annotations

import pytest

from unstall.benchmark.machine import Ceilings
from unstall.runs import doctor

CEILINGS = Ceilings(
    key="k",
    when="2026-01-01T00:00:00+00:00",
    cpu="a processor",
    cores=1.5,
    matmul_flops_f32=55.9e9,
    matmul_by="numpy",
    memory_copy_bytes_per_s=17.4e9,
)


class Shown:
    def update(self, text):
        pass


class SimpleLoad:
    """A machine of which other programs take so many cores."""

    def __init__(self, cores):
        self.cores = cores

    def of_others(self, seconds):
        return self.cores


def examined(save, cores=0.1):
    return doctor.examine(
        quick=True,
        progress=Shown(),
        try_out=list,
        measure=lambda quick: CEILINGS,
        save=save,
        load=lambda: SimpleLoad(cores),
    )


@pytest.mark.parametrize(("cores", "is_kept"), [(0.1, True), (1.4, False)])
def test_figures_of_a_busy_machine_are_not_kept(cores, is_kept):
    kept = []
    found = examined(kept.append, cores)
    assert found.ceilings == CEILINGS and found.is_disturbed is not is_kept
    assert kept == [CEILINGS] * is_kept


def test_a_cache_that_cannot_be_written_does_no_harm():
    def full(ceilings):
        raise OSError("No space left on device")

    assert examined(full).ceilings == CEILINGS
